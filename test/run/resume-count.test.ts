import { describe, expect, test } from "vitest";
import {
  CheckpointSaveError,
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  State,
  StateGraph,
} from "waymark";
import { report } from "../../src/report/index.js";
import { linear, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { MortalStore } from "../nodes/nodes.js";
import { restarted, world } from "../recovery/crashes.js";

test("a resume is counted and saved before the first node, whatever stopped the run", async () => {
  const store = new RecordingStore();
  const controller = new AbortController();
  const go = (left: number) =>
    linear(["a", "b", "c"], {
      checkpoint: { store: new MortalStore(store, left), interval: 1, preserve: true },
    });
  const graph = go(Number.POSITIVE_INFINITY).on("node.start", ({ data }) => {
    if (data.node === "b") controller.abort();
  });
  await graph.execute(start("r"), { signal: controller.signal }).catch(() => {});
  expect(await store.load("r")).toMatchObject({ reason: "abort", resumes: 0, crashes: 0 });
  // It dies right after its resume, so the next one knows of a crash.
  await go(1)
    .resume("r")
    .catch(() => {});
  expect(await store.load("r")).toMatchObject({ reason: "resume", resumes: 1, crashes: 0 });
  const final = await go(Number.POSITIVE_INFINITY).resume("r");
  expect(final).toMatchObject({ status: "completed", resumes: 2, crashes: 1 });
  const fork = await go(Number.POSITIVE_INFINITY).fork("r", 1);
  expect(fork).toMatchObject({ resumes: 0, crashes: 0 });
});

test("a resume inside a node is recorded as such, and a failure stays in the history", async () => {
  const store = new RecordingStore();
  let fails = true;
  const graphOn = (left: number) =>
    new StateGraph<{ n: number }>({
      checkpoint: { store: new MortalStore(store, left), interval: 1, preserve: true },
    })
      .addNode("pay", async (_state, context) => {
        await context.once("one", () => 1);
        await context.once("two", () => 2);
        if (fails) throw new Error("no");
        return { n: 3 };
      })
      .setEntryPoint("pay")
      .setExitPoint("pay");
  await graphOn(2)
    .execute(State.create({ n: 0 }, { runId: "r" }))
    .catch(() => {});
  await graphOn(9)
    .resume("r")
    .catch(() => {});
  fails = false;
  expect(await graphOn(9).resume("r")).toMatchObject({ resumes: 2, crashes: 1 });
  expect(store.saved.map(({ reason }) => reason)).toEqual([
    ...["start", "once", "resume", "once", "failure", "resume", "complete"],
  ]);
});

describe("a resumed failed run", () => {
  /** a → b, whose `b` fails, then takes its process with it, then works. */
  async function killedAfterFailure(store: MemoryStore) {
    const graphOn = (left: number, b?: NodeFunction<Trail>) =>
      linear(
        ["a", "b"],
        { checkpoint: { store: new MortalStore(store, left), interval: 1, preserve: true } },
        b && { b },
      );
    const fails = () => {
      throw new RangeError("no paper");
    };
    await rejection(graphOn(9, fails).execute(start("r")), ExecutionError);
    await rejection(graphOn(1).resume("r"), CheckpointSaveError);
    return graphOn(9);
  }

  test("counts a crash inside its node, and keeps its failure until it progresses", async () => {
    const store = new MemoryStore();
    const graph = await killedAfterFailure(store);
    const left = await store.load("r");
    expect(left).toMatchObject({ status: "failed", reason: "resume", resumes: 1, crashes: 0 });
    expect(left.error).toMatchObject({ name: "RangeError", message: "no paper", node: "b" });
    const final = await graph.resume("r");
    expect(final).toMatchObject({ status: "completed", resumes: 2, crashes: 1, error: undefined });
    expect(final.steps.map(({ node, attempts, restarts }) => [node, attempts, restarts])).toEqual([
      ["a", 1, undefined],
      ["b", 2, 1],
    ]);
    expect((await report("r", { store })).repeated.visits).toBe(1);
    const history = (await store.history("r")).map(({ step, status, reason }) => [
      ...[step, status, reason],
    ]);
    expect(history).toEqual([
      [2, "completed", "complete"],
      [1, "failed", "failure"],
      [0, "in_progress", "start"],
    ]);
  });

  test("counts no crash if it was cancelled", async () => {
    const store = new MemoryStore();
    const graph = await killedAfterFailure(store);
    await rejection(graph.resume("r", { signal: AbortSignal.abort() }), ExecutionError);
    expect(await graph.resume("r")).toMatchObject({ resumes: 3, crashes: 1 });
  });
});

test("a recovery that is stopped, or gives up, does not count as a crash", async () => {
  const { begin, recover, graphIn, store } = world("crash", "throw", "throw", "work");
  await begin();
  await recover({ maxAttempts: 1 });
  expect(await store.load("r")).toMatchObject({ status: "failed", reason: "failure", crashes: 1 });
  await rejection(graphIn(restarted(store)).resume("r"), ExecutionError);
  expect(await graphIn(restarted(store)).resume("r")).toMatchObject({ resumes: 3, crashes: 1 });
});
