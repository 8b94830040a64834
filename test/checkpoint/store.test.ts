import { describe, expect, test } from "vitest";
import { CheckpointNotFoundError, MemoryStore } from "waymark";
import { entryOf, isAt, isCheckpointStore, summarize } from "../../src/checkpoint/store.js";
import { bare, linear, start, stoppedRun } from "../graphs.js";

describe("what is a store", () => {
  test.each<[what: string, value: unknown, answer: boolean]>([
    ["a MemoryStore", new MemoryStore(), true],
    ["any object with the four methods", bare(new MemoryStore()), true],
    ["one that inherits them", Object.create(new MemoryStore()), true],
    ["one without list", { ...bare(new MemoryStore()), list: undefined }, false],
    ["one whose save is text", { ...bare(new MemoryStore()), save: "yes" }, false],
    ["an empty object", {}, false],
    ["null", null, false],
    ["a name", "memory", false],
    ["a class", MemoryStore, false],
  ])("%s", (_what, value, answer) => {
    expect(isCheckpointStore(value)).toBe(answer);
  });
});

test.each([
  [{}, true],
  [{ step: 2 }, true],
  [{ step: 1 }, false],
  [{ checkpointId: "x" }, true],
  [{ checkpointId: "y" }, false],
  [{ step: 2, checkpointId: "x" }, true],
  [{ step: 2, checkpointId: "y" }, false],
  [{ step: 1, checkpointId: "x" }, false],
])("a checkpoint x of step 2 is asked for by %j: %s", (at, answer) => {
  expect(isAt(at, { step: 2, checkpointId: "x" })).toBe(answer);
});

test.each([
  [undefined, 'run "r" has no checkpoint in this store'],
  [{}, 'run "r" has no checkpoint in this store'],
  [{ step: 0 }, 'run "r" has no checkpoint at step 0 in this store'],
  [{ checkpointId: "x" }, 'run "r" has no checkpoint with the id "x" in this store'],
  [
    { step: 3, checkpointId: "x" },
    'run "r" has no checkpoint at step 3 with the id "x" in this store',
  ],
])("what is not found at %j is said as it was asked", (at, message) => {
  expect(new CheckpointNotFoundError("r", at).message).toBe(message);
});

test("a run's summary has its graph, its progress and its times", async () => {
  expect(summarize(start("r"))).toMatchObject({
    runId: "r",
    graph: "",
    status: "pending",
    node: "",
    step: 0,
  });
  const final = await linear(["a", "b"], { name: "g" }).execute(start("r"));
  const { timestamp, startedAt } = final;
  expect(summarize(final)).toEqual({
    runId: "r",
    graph: "g",
    status: "completed",
    node: "b",
    nextNode: undefined,
    phase: "",
    step: 2,
    startedAt,
    savedAt: "",
    timestamp,
    metadata: {},
  });
});

test("the summary of a failed run has its error, without the stack", async () => {
  const store = await stoppedRun(["a", "b"], "b");
  const failed = await store.load("r");
  expect(failed.error?.stack).toContain("stop");
  expect(summarize(failed).error).toStrictEqual({ name: "Error", message: "stop", node: "b" });
});

test("a history entry has a size only if the store reports one", () => {
  const savedAt = "2030-01-01T00:00:00.000Z";
  const state = start("r").savedAs({ checkpointId: "x", sequence: 3, savedAt });
  const entry = {
    sequence: 3,
    step: 0,
    node: "",
    phase: "",
    status: "pending",
    timestamp: state.timestamp,
    savedAt,
    checkpointId: "x",
    parentId: "w",
    reason: "",
    unfinished: true,
    metadata: {},
  };
  expect(entryOf(state, "w", true)).toStrictEqual(entry);
  const sized = state.savedAs({ checkpointId: "x", sequence: 3, savedAt, bytes: 0 });
  expect(entryOf(sized, "w", true)).toStrictEqual({ ...entry, bytes: 0 });
});
