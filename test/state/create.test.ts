import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { useFakeClock } from "waymark/testing";
import { configError } from "../matchers.js";

const uuid7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("create", () => {
  test("starts a pending run without history", () => {
    const clock = useFakeClock(Date.parse("2030-01-02T03:04:05.678Z"));
    const state = State.create({ topic: "cairns" });
    clock.restore();
    expect(state).toMatchObject({
      checkpointNode: "",
      timestamp: "2030-01-02T03:04:05.678Z",
      startedAt: "2030-01-02T03:04:05.678Z",
      savedAt: "",
      phase: "",
      nextNode: undefined,
      metadata: {},
      step: 0,
      status: "pending",
      reason: "",
      checkpointId: "",
      sequence: 0,
      bytes: undefined,
      error: undefined,
      parent: undefined,
      graph: undefined,
      visits: {},
    });
    expect(state.data).toEqual({ topic: "cairns" });
  });

  test("makes a new uuid v7 for each run, or takes the caller's id", () => {
    const ids = [State.create({}).runId, State.create({}).runId];
    expect(ids).toEqual([expect.stringMatching(uuid7), expect.stringMatching(uuid7)]);
    expect(new Set(ids).size).toBe(2);
    expect(State.create({}, { runId: "../x" }).runId).toBe("../x");
    expect(State.create({}, { runId: undefined as never }).runId).toMatch(uuid7);
  });

  test.each<[unknown]>([
    [undefined],
    [null],
    ["text"],
    [5],
    [[]],
    [() => {}],
    [new Date()],
    [new Map()],
    [new (class Order {})()],
    [State.create({})],
  ])("refuses %o as data", (data) => {
    expect(() => State.create(data as object)).toThrow(
      configError("data", "^data must be a plain object; got "),
    );
  });

  test.each<[unknown, string, RegExp]>([
    [null, "options", /must be an object of options; got null/],
    ["run-1", "options", /got "run-1"/],
    [
      { runID: "x" },
      "options.runID",
      /is not an option; the options are runId, metadata, observer/,
    ],
    [{ observer: {} }, "options.observer", /must be a function or an object with onEvent/],
    [{ observer: null }, "options.observer", /got null/],
    [{ runId: "" }, "runId", /must be a string of 1 to 200 characters; got an empty one/],
    [{ runId: 5 }, "runId", /got 5/],
    [{ runId: "x".repeat(201) }, "runId", /got 201 characters/],
    [{ runId: "a\0" }, "runId", /got a control character in "a\\u0000"/],
    [{ runId: "a\n" }, "runId", /control character/],
    [{ runId: "a\u007f" }, "runId", /control character/],
    [{ runId: "\ud800" }, "runId", /got half a surrogate pair/],
  ])("refuses %j as options", (options, option, message) => {
    expect(() => State.create({}, options as never)).toThrow(configError(option, message));
  });

  test.each(["x", "x".repeat(200), "CON", "..", "a b", "läufer-😀", "."])(
    "takes %s as an id",
    (runId) => {
      expect(State.create({}, { runId }).runId).toBe(runId);
    },
  );

  test("keeps a frozen copy of the metadata", () => {
    const metadata = { tenant: "acme", attempt: 2, urgent: false };
    const state = State.create({ n: 1 }, { metadata });
    metadata.tenant = "other";
    expect(state.metadata).toEqual({ tenant: "acme", attempt: 2, urgent: false });
    expect(Object.isFrozen(state.metadata)).toBe(true);
    expect(state.set("n", 2).setCheckpointNode("x").metadata).toBe(state.metadata);
    expect(State.fromJSON(JSON.stringify(state)).metadata).toEqual(state.metadata);
    expect(State.create({}).toJSON()).not.toHaveProperty("metadata");
  });

  test.each<[string, unknown, string, RegExp]>([
    ["a Map", new Map(), "options.metadata", /must be a plain object; got a Map/],
    ["null", null, "options.metadata", /must be a plain object; got null/],
    ["a list", { list: [] }, "options.metadata.list", /must be a string, .*; got an array/],
    ["NaN", { n: Number.NaN }, "options.metadata.n", /finite number .*; got NaN/],
    ["null in it", { n: null }, "options.metadata.n", /; got null/],
    ["5 KB", { text: "x".repeat(5000) }, "options.metadata", /at most 4096 bytes .*; got 5011/],
    ["5 KB of UTF-8", { text: "山".repeat(1500) }, "options.metadata", /; got 4511/],
  ])("refuses %s as metadata", (_, metadata, option, message) => {
    expect(() => State.create({}, { metadata: metadata as never })).toThrow(
      configError(option, message),
    );
  });
});
