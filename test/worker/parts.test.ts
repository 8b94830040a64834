import { describe, expect, test } from "vitest";
import { CheckpointConflictError, ExecutionError, MemoryStore, State } from "waymark";
import { Client } from "waymark/worker";
import { health } from "../../src/worker/metrics.js";
import { jobIdOf, runIdOf } from "../../src/worker/names.js";
import { judge } from "../../src/worker/outcome.js";
import { failedError } from "../../src/worker/run-error.js";

describe("job ids", () => {
  test("stand for one run each", () => {
    const ids = ["a", "a:b", "a%3Ab", "~a%3Ab", "~a:b", "%", "7", "~7", "-7", "07", "repeat:a:1"];
    expect(new Set(ids.map(jobIdOf)).size).toBe(ids.length);
    expect(ids.map((id) => runIdOf(jobIdOf(id)))).toEqual(ids);
    expect(jobIdOf("order-7")).toBe("order-7");
  });
});

describe("what a failed run says", () => {
  test("is what its worker knew, when the store has nothing", () => {
    const error = failedError("r", undefined, undefined, "stalled");
    expect(error).toBeInstanceOf(ExecutionError);
    expect(error).toMatchObject({ code: "NODE_FAILED", message: "stalled", nodeName: "" });
    const failure = { name: "TypeError", message: "no" };
    expect(failedError("r", State.create({}), failure, "no").cause).toMatchObject(failure);
  });

  test("counts a failure without a State as the first", () => {
    const state = { runId: "r", checkpointNode: "", step: 0, data: {} };
    const error = new ExecutionError("NODE_FAILED", "no", { nodeName: "a", state, path: [] });
    const backoff = { first: 10, longest: 100 };
    expect(judge(error, { why: undefined }, 2, backoff)).toMatchObject({ kind: "failed", error });
    expect(judge(error, { why: undefined }, 1, backoff)).toEqual({ kind: "failed", error });
    const conflict = new CheckpointConflictError("r", 1, 2);
    expect(judge(conflict, { why: "cancel" }, 1, backoff)).toEqual({ kind: "elsewhere" });
  });
});

describe("health", () => {
  const of = { isClosing: false, running: 0, lastError: new Error("no answer") };
  const line = (isPaused: () => Promise<boolean>) =>
    ({ graph: { name: "g" }, queue: { isPaused }, worker: { isRunning: () => true } }) as never;

  test("is bad when the queue does not answer", async () => {
    const silent = line(() => new Promise(() => {}));
    const cut = { ok: false, state: "cut-off", running: 0, lastError: "no answer" };
    expect(await health({ ...of, lines: [silent] })).toEqual(cut);
    expect(await health({ ...of, lines: [line(async () => Promise.reject(new Error()))] })).toEqual(
      cut,
    );
  });
});

/** Stands in for BullMQ on Redis, and remembers what it was made with. */
function fakeBullMQ() {
  const made: unknown[][] = [];
  class Fake {
    constructor(...args: unknown[]) {
      made.push(args);
    }
    on(): void {}
    async add(): Promise<{ id: string }> {
      return { id: "r" };
    }
    async close(): Promise<void> {}
  }
  const factory = () => {};
  const withBackend = (given: unknown) => {
    made.push([given === factory]);
    return { Queue: Fake };
  };
  return { made, bullmq: { createRedisBackend: factory, withBackend } };
}

test("on Redis, BullMQ gets its address and the prefix", async () => {
  const { made, bullmq } = fakeBullMQ();
  const connection = { url: "redis://host:7/1", prefix: "mine", driver: { db: 3 } };
  const client = new Client({ connection, store: new MemoryStore() }, async (name) =>
    name === "bullmq" ? bullmq : {},
  );
  expect((await client.submit("g", {}, { runId: "r" })).runId).toBe("r");
  const options = {
    connection: { db: 3, url: "redis://host:7/1", maxRetriesPerRequest: null },
    prefix: "mine",
  };
  expect(made[0]).toEqual([true]);
  expect(made.slice(1)).toEqual([
    ["waymark.cancel", options],
    ["waymark-g", options],
  ]);
  await client.close();
});
