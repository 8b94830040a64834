import { describe, expect, test } from "vitest";
import {
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  CheckpointSaveError,
  ConfigError,
  ExecutionError,
  type NodeFunction,
  type State,
  StateGraph,
} from "waymark";
import {
  cycle,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  stoppedRun,
  type Trail,
} from "../graphs.js";

/** A graph of these nodes, and what they were run for since. */
function traced(store: RecordingStore, names: readonly string[], interval = 1) {
  const ran: string[] = [];
  const tell: NodeFunction<Trail> = (state, ctx) => {
    ran.push(ctx.node);
    return mark(state, ctx);
  };
  const nodes = Object.fromEntries(names.map((name) => [name, tell]));
  return { ran, graph: linear(names, { checkpoint: { store, interval, preserve: true } }, nodes) };
}

const abcd = ["a", "b", "c", "d"];

describe("resume", () => {
  test.each([
    ["a", ["a", "b", "c", "d"]],
    ["b", ["b", "c", "d"]],
    ["d", ["d"]],
  ])("of a run that stopped at %s runs only %j", async (node, rest) => {
    const { graph, ran } = traced(await stoppedRun(abcd, node), abcd);
    const final = await graph.resume("r");
    expect(ran).toEqual(rest);
    expect(final.data.trail).toEqual(abcd);
    expect(final).toMatchObject({
      runId: "r",
      step: 4,
      status: "completed",
      visits: { a: 1, d: 1 },
    });
  });

  test("evaluates the edges of the checkpointed node again, with its data", async () => {
    const store = await stoppedRun(abcd, "b");
    const { graph, ran } = traced(store, abcd);
    const asked: (readonly string[])[] = [];
    const other = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
      .addNode("a", mark)
      .addNode("z", mark)
      .addEdge("a", "z", (state) => asked.push(state.data.trail) > 0)
      .setEntryPoint("a")
      .setExitPoint("z");
    expect((await other.resume("r")).data.trail).toEqual(["a", "z"]);
    expect(asked).toEqual([["a"]]);
    expect([graph.name, ran]).toEqual(["graph", []]);
  });

  test("continues after an older step, and its saves are last in the history", async () => {
    const store = new RecordingStore();
    const { graph, ran } = traced(store, abcd);
    await graph.execute(start("r"));
    ran.length = 0;
    const final = await graph.resume("r", { step: 2 });
    expect(ran).toEqual(["c", "d"]);
    expect(final.data.trail).toEqual(abcd);
    const [newest, before] = await graph.history("r");
    expect(newest).toMatchObject({ sequence: 7, step: 4, node: "d", status: "completed" });
    expect(before).toMatchObject({ sequence: 6, step: 3, parentId: store.saved[2]?.checkpointId });
  });

  test("continues after a checkpoint by its id", async () => {
    const store = new RecordingStore();
    const { graph, ran } = traced(store, abcd);
    await graph.execute(start("r"));
    ran.length = 0;
    await graph.resume("r", { checkpointId: store.saved[3]?.checkpointId });
    expect(ran).toEqual(["d"]);
  });

  test("by step uses the newest checkpoint of that step", async () => {
    const store = await stoppedRun(abcd, "b");
    const { graph } = traced(store, abcd);
    const events = listen(graph);
    await graph.resume("r", { step: 1 });
    expect(events[0]).toMatchObject({
      type: "checkpoint.load",
      data: { checkpointId: store.saved[2]?.checkpointId, step: 1, node: "a" },
    });
  });

  test("from the first checkpoint runs everything again", async () => {
    const store = new RecordingStore();
    const { graph, ran } = traced(store, abcd);
    await graph.execute(start("r"));
    await graph.resume("r", { step: 0 });
    expect(ran).toEqual([...abcd, ...abcd]);
  });

  test.each([
    ["an unknown run", "nobody", {}, /run "nobody" has no checkpoint in/],
    ["an unknown step", "r", { step: 9 }, /at step 9/],
    ["an unknown checkpoint", "r", { checkpointId: "x" }, /with the id "x"/],
    [
      "a step and the id of another",
      "r",
      { step: 9, checkpointId: "x" },
      /at step 9 with the id "x"/,
    ],
  ])("of %s is CheckpointNotFoundError", async (_what, runId, at, message) => {
    const { graph } = traced(await stoppedRun(abcd, "b"), abcd);
    const error = await rejection(graph.resume(runId, at), CheckpointNotFoundError);
    expect(error.runId).toBe(runId);
    expect(error.message).toMatch(message);
  });

  test.each([
    [{ step: -1 }, "step"],
    [{ step: 1.5 }, "step"],
    [{ step: "1" }, "step"],
    [{ step: null }, "step"],
    [{ checkpointId: 7 }, "checkpointId"],
  ])("refuses %j", async (at, option) => {
    const { graph } = traced(await stoppedRun(abcd, "b"), abcd);
    expect((await rejection(graph.resume("r", at as object), ConfigError)).option).toBe(option);
  });

  test.each(["", "a\0b", 7, undefined, "x".repeat(300)])("refuses the run id %j", async (runId) => {
    const { graph } = traced(new RecordingStore(), abcd);
    expect((await rejection(graph.resume(runId as string), ConfigError)).option).toBe("runId");
    expect((await rejection(graph.history(runId as string), ConfigError)).option).toBe("runId");
  });

  test("without checkpointing is an error that names the setting to change", async () => {
    const error = await rejection(linear(["a"]).resume("r"), ConfigError);
    expect(error.option).toBe("config.checkpoint.interval");
    await rejection(linear(["a"]).history("r"), ConfigError);
    await rejection(linear(["a"]).resumeOrStart(start()), ConfigError);
  });
});

test.each([1, 2, 3, 4])("rule 6: what save %i acknowledged never runs again", async (last) => {
  const store = new RecordingStore();
  const { graph, ran } = traced(store, abcd);
  store.beforeSave = () => {
    if (store.saved.length === last) throw new Error("power cut");
  };
  await rejection(graph.execute(start("r")), CheckpointSaveError);
  expect(ran).toEqual(abcd.slice(0, last));
  store.beforeSave = () => {};
  ran.length = 0;
  const final = await graph.resume("r");
  // The node whose save was lost runs a second time, those before it do not.
  expect(ran).toEqual(abcd.slice(last - 1));
  expect(final.data.trail).toEqual(abcd);
});

describe("rule 4: resume at an exit point returns the final State and runs nothing", () => {
  test.each([
    ["without edges", (graph: StateGraph<Trail, string>) => graph],
    ["with edges", (graph: StateGraph<Trail, string>) => graph.addEdge("d", "a")],
  ])("%s", async (_what, change) => {
    const store = new RecordingStore();
    const { graph, ran } = traced(store, abcd);
    const final = await change(graph).execute(start("r"));
    ran.length = 0;
    const saves = store.saved.length;
    const again = await graph.resume("r");
    expect(again.toJSON()).toEqual(final.toJSON());
    expect(again.status).toBe("completed");
    expect(ran).toEqual([]);
    expect(store.saved).toHaveLength(saves);
  });

  test("even if the node became one later", async () => {
    const { graph, ran } = traced(await stoppedRun(abcd, "c"), abcd);
    const final = await graph.setExitPoint("b").resume("r");
    expect(final).toMatchObject({ checkpointNode: "b", status: "completed", error: undefined });
    expect(ran).toEqual([]);
  });
});

describe("rule 5: across resumes", () => {
  /** Ends a cycle early as often as it takes: each call completes at most three nodes. */
  async function inPieces(maxIterations: number, rounds: number) {
    const store = new RecordingStore();
    const visits: number[] = [];
    const piece = (limit: number) => {
      const graph = cycle(rounds, { maxIterations: limit, checkpoint: { store, interval: 2 } });
      return graph.on("cycle.detected", ({ data }) => visits.push(data.visitCount));
    };
    let outcome: unknown = await piece(3)
      .execute(start("r"))
      .catch((error: unknown) => error);
    for (let limit = 6; outcome instanceof ExecutionError && limit <= maxIterations; limit += 3) {
      outcome = await piece(limit)
        .resume("r")
        .catch((error: unknown) => error);
    }
    return { outcome, visits };
  }

  test("maxIterations limits the whole run", async () => {
    const { outcome } = await inPieces(9, 100);
    expect(outcome).toBeInstanceOf(ExecutionError);
    expect(outcome).toMatchObject({
      code: "MAX_ITERATIONS",
      state: { step: 9 },
      path: ["tick", "tick", "tick"],
    });
  });

  test("a cycle's visit count continues", async () => {
    const { outcome, visits } = await inPieces(99, 7);
    expect((outcome as State<Trail>).visits).toEqual({ tick: 7, done: 1 });
    expect(visits).toEqual([2, 3, 4, 5, 6, 7]);
  });

  test("a run that used up its iterations is stopped at once, until there are more", async () => {
    const store = new RecordingStore();
    const checkpoint = { store, interval: 1 };
    await rejection(cycle(5, { maxIterations: 2, checkpoint }).execute(start("r")), ExecutionError);
    const graph = cycle(5, { maxIterations: 2, checkpoint });
    const error = await rejection(graph.resume("r"), ExecutionError);
    expect(error).toMatchObject({ code: "MAX_ITERATIONS", path: [], nodeName: "tick" });
    expect((await cycle(5, { checkpoint }).resume("r")).step).toBe(6);
  });
});

describe("resumeOrStart", () => {
  test("starts a run that is not in the store, and resumes one that is", async () => {
    const store = new RecordingStore();
    const { graph, ran } = traced(store, abcd);
    const first = await graph.resumeOrStart(start("r"));
    expect(ran).toEqual(abcd);
    const second = await graph.resumeOrStart(start("r"));
    expect(ran).toEqual(abcd);
    expect(second.toJSON()).toEqual(first.toJSON());
    const stopped = traced(await stoppedRun(abcd, "c"), abcd);
    expect((await stopped.graph.resumeOrStart(start("r"))).data.trail).toEqual(abcd);
    expect(stopped.ran).toEqual(["c", "d"]);
  });

  test("starts over if all checkpoints are corrupt, and emits a warning", async () => {
    const store = new RecordingStore();
    store.load = async () => {
      throw new CheckpointCorruptionError("all bad", { expected: "1", actual: "2" });
    };
    const { graph, ran } = traced(store, abcd);
    const events = listen(graph);
    expect((await graph.resumeOrStart(start("r"))).step).toBe(4);
    expect(ran).toEqual(abcd);
    expect(events[0]).toMatchObject({
      type: "checkpoint.warning",
      runId: "r",
      data: { kind: "fresh-start", node: "", message: "the run starts over: all bad" },
    });
    await rejection(graph.resume("r"), CheckpointCorruptionError);
  });

  test("does not start a run over if the store can't be read", async () => {
    const store = new RecordingStore();
    const down = new RangeError("store down");
    store.load = async () => {
      throw down;
    };
    const { graph, ran } = traced(store, abcd);
    expect(await rejection(graph.resumeOrStart(start("r")), RangeError)).toBe(down);
    expect(ran).toEqual([]);
  });
});
