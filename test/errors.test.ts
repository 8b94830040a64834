import { describe, expect, test, vi } from "vitest";
import {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  type ErrorCode,
  ExecutionError,
  FatalError,
  GraphError,
  isWaymarkError,
  MigrationError,
  RetryableError,
  SerializationError,
  State,
  WaymarkError,
} from "waymark";
import { show } from "../src/errors.js";

const cause = new Error("behind it");
const state = State.create({});
const where = { nodeName: "draft", state, path: ["start", "draft"], cause };

const errors: readonly (readonly [string, ErrorCode, WaymarkError, string, object])[] = [
  ["GraphError", "GRAPH_NO_ENTRY", new GraphError("GRAPH_NO_ENTRY", "no entry"), "no entry", {}],
  [
    "ExecutionError",
    "NODE_FAILED",
    new ExecutionError("NODE_FAILED", "failed", where),
    "failed",
    where,
  ],
  [
    "CheckpointSaveError",
    "CHECKPOINT_SAVE",
    new CheckpointSaveError("not saved", where),
    "not saved",
    where,
  ],
  [
    "CheckpointNotFoundError",
    "CHECKPOINT_NOT_FOUND",
    new CheckpointNotFoundError("run-1"),
    'run "run-1" has no checkpoint in this store',
    { runId: "run-1" },
  ],
  [
    "CheckpointNotFoundError",
    "CHECKPOINT_NOT_FOUND",
    new CheckpointNotFoundError("run-1", { step: 3 }),
    'run "run-1" has no checkpoint at step 3 in this store',
    { runId: "run-1" },
  ],
  [
    "CheckpointCorruptionError",
    "CHECKPOINT_CORRUPT",
    new CheckpointCorruptionError("bad", { expected: "a", actual: "b", cause }),
    "bad",
    { expected: "a", actual: "b", cause },
  ],
  [
    "CheckpointConflictError",
    "CHECKPOINT_CONFLICT",
    new CheckpointConflictError("run-1", 2, 5),
    'run "run-1" was saved by another writer: this State builds on sequence 2, the store is at 5',
    { runId: "run-1", expected: 2, actual: 5 },
  ],
  [
    "CheckpointConflictError",
    "CHECKPOINT_CONFLICT",
    new CheckpointConflictError("run-1", 0, 5),
    'run "run-1" is already in this store: resume it, delete it, or use another runId',
    { expected: 0 },
  ],
  [
    "SerializationError",
    "SERIALIZATION",
    new SerializationError("data.a", "is bad", { cause }),
    "data.a is bad",
    { path: "data.a", cause },
  ],
  [
    "MigrationError",
    "MIGRATION",
    new MigrationError(1, 3, "no link", { cause }),
    "the checkpoint has schema version 1, the graph 3: no link",
    { from: 1, to: 3, cause },
  ],
  [
    "ConfigError",
    "CONFIG",
    new ConfigError("config.x", "wants y"),
    "config.x wants y",
    { option: "config.x" },
  ],
];

describe("an error of waymark", () => {
  test.each(errors)("%s: %s", (name, code, error, message, fields) => {
    expect(error).toBeInstanceOf(WaymarkError);
    expect(error).toMatchObject({ name, code, message, ...fields });
    expect(error.constructor.name).toBe(name);
    expect(String(error)).toBe(`${name}: ${message}`);
    expect(error.stack).toContain("errors.test.ts");
  });

  test("has no cause by default", () => {
    const none = { ...where, cause: undefined };
    const options = { expected: "a", actual: "b" };
    for (const error of [
      new ExecutionError("ABORTED", "x", none),
      new CheckpointCorruptionError("x", options),
      new SerializationError("data", "x"),
    ]) {
      expect(Object.hasOwn(error, "cause")).toBe(false);
    }
  });

  test("keeps a cause that is not an error as it is", () => {
    for (const thrown of ["text", 0, null, false]) {
      expect(new ExecutionError("NODE_FAILED", "x", { ...where, cause: thrown }).cause).toBe(
        thrown,
      );
    }
  });

  test("a save error is an execution error", () => {
    expect(new CheckpointSaveError("x", where)).toBeInstanceOf(ExecutionError);
  });

  test("a class made from one has its own name", () => {
    class TapeError extends WaymarkError {}
    expect(new TapeError("CONFIG", "x").name).toBe("TapeError");
  });
});

describe("isWaymarkError", () => {
  test.each(errors)("knows %s by %s", (_, code, error) => {
    expect(isWaymarkError(error)).toBe(true);
    expect(isWaymarkError(error, code)).toBe(true);
    expect(isWaymarkError(error, code === "CONFIG" ? "MIGRATION" : "CONFIG")).toBe(false);
  });

  test("recognizes an error of a second copy of the package", async () => {
    vi.resetModules();
    const copy = await import("../src/errors.js");
    const error = new copy.CheckpointNotFoundError("run-1");
    expect(error).not.toBeInstanceOf(WaymarkError);
    expect(isWaymarkError(error)).toBe(true);
    expect(isWaymarkError(error, "CHECKPOINT_NOT_FOUND")).toBe(true);
    expect(isWaymarkError(error, "CONFIG")).toBe(false);
  });

  test.each<[string, unknown]>([
    ["another error", new Error("x")],
    ["a code of somebody else", Object.assign(new Error("x"), { code: "ENOENT" })],
    [
      "an error of somebody else with a code of ours",
      Object.assign(new Error("x"), { code: "CONFIG" }),
    ],
    ["no code", Object.assign(new Error("x"), { code: undefined })],
    ["no error", { code: "CONFIG" }],
    ["a text", "CONFIG"],
    ["null", null],
    ["undefined", undefined],
    ["what a node throws to be tried again", new RetryableError("x")],
  ])("says no to %s", (_, value) => {
    expect([isWaymarkError(value), isWaymarkError(value, "CONFIG")]).toEqual([false, false]);
  });
});

test("RetryableError and FatalError have a name, a cause and a time", () => {
  expect(new FatalError("no", { cause })).toMatchObject({
    name: "FatalError",
    message: "no",
    cause,
  });
  const later = new RetryableError("busy", { retryAfter: 500, cause });
  expect(later).toMatchObject({ name: "RetryableError", retryAfter: 500, cause });
  expect(new RetryableError("busy").retryAfter).toBeUndefined();
});

describe("show", () => {
  test.each<[string, unknown]>([
    ['"text"', "text"],
    ['""', ""],
    ['"a \\"quoted\\"\\nline"', 'a "quoted"\nline'],
    [`"${"x".repeat(40)}"`, "x".repeat(40)],
    [`"${"x".repeat(40)}"… (a string)`, `${"x".repeat(40)}secret`],
    ["5", 5],
    ["0", -0],
    ["NaN", Number.NaN],
    ["5n", 5n],
    [`1${"0".repeat(39)}… (a bigint)`, 10n ** 100n],
    [`Symbol(${"x".repeat(33)}… (a symbol)`, Symbol(`${"x".repeat(40)}secret`)],
    ["true", true],
    ["null", null],
    ["undefined", undefined],
    ["Symbol(id)", Symbol("id")],
    ["the function encodeURI", encodeURI],
    ["the function (anonymous)", (() => () => {})()],
    ["an object", { password: "x" }],
    ["an array", ["x"]],
    ["a Date", new Date()],
    ["a null-prototype object", Object.create(null)],
    ["an object of an unnamed class", new (class {})()],
    ["an object of an unnamed class", Object.create({ constructor: undefined })],
    ["an object of an unnamed class", Object.create({ constructor: { name: 5 } })],
  ])("%s", (text, value) => {
    expect(show(value)).toBe(text);
  });
});
