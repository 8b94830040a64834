import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  ExecutionError,
  type GraphConfig,
  type NodeFunction,
} from "waymark";
import {
  bare,
  gate,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
  typesOf,
} from "../graphs.js";

const names = ["a", "b", "c", "d"];

/**
 * Run `r`, stopped inside `b` until the test lets it continue, and a second process's graph on the same store, in
 * which runs can't be claimed unless `config` says otherwise.
 */
function twoProcesses(config: GraphConfig["checkpoint"] = {}, fails?: Error) {
  const store = new RecordingStore();
  const checkpoint = { store: bare(store), interval: 1, preserve: true, ...config };
  const inside = gate();
  const goOn = gate();
  const ran: string[] = [];
  let signal: AbortSignal | undefined;
  const b: NodeFunction<Trail> = async (state, ctx) => {
    signal = ctx.signal;
    inside.open();
    await goOn.opened;
    if (fails !== undefined) throw fails;
    return { trail: [...state.data.trail, "b of the first"] };
  };
  const tell: NodeFunction<Trail> = (state, ctx) => {
    ran.push(ctx.node);
    return mark(state, ctx);
  };
  const first = linear(names, { checkpoint }, { b, c: tell, d: tell });
  const second = linear(names, { checkpoint });
  const running = first.execute(start("r"));
  // The test looks at it later than it may be rejected.
  running.catch(() => {});
  return { store, first, second, running, inside, goOn, ran, signal: () => signal };
}

describe("rule 7: in a store with claims", () => {
  test("the second process on a run is refused before any node starts, by an error that names the holder", async () => {
    const store = new RecordingStore();
    const { first, running, inside, goOn } = twoProcesses({ store });
    await inside.opened;
    const second = linear(names, { checkpoint: { store, interval: 1, preserve: true } });
    const events = listen(second);
    const { length } = store.saved;
    const again = [
      () => second.resume("r"),
      () => second.execute(start("r")),
      () => second.resumeOrStart(start("r")),
      () => first.resume("r"),
    ];
    for (const action of again) {
      const error = await rejection(action(), CheckpointConflictError);
      expect(error.holder).toMatchObject({ pid: process.pid, since: expect.any(String) });
      expect(error.message).toContain(`run "r" is being worked on by process ${process.pid}`);
    }
    expect(typesOf(events)).toEqual([]);
    expect(store.saved).toHaveLength(length);
    goOn.open();
    expect((await running).status).toBe("completed");
    expect((await second.resume("r")).status).toBe("completed");
  });

  test("of two processes that start a run at once, one runs it, and no node runs twice", async () => {
    const store = new RecordingStore();
    const ran: string[] = [];
    const node: NodeFunction<Trail> = (state, ctx) => {
      ran.push(ctx.node);
      return mark(state, ctx);
    };
    const nodes = Object.fromEntries(names.map((name) => [name, node]));
    const graph = linear(names, { checkpoint: { store, interval: 1, preserve: true } }, nodes);
    const outcomes = await Promise.allSettled([
      graph.execute(start("r")),
      graph.execute(start("r")),
    ]);
    const lost = outcomes.filter(({ status }) => status === "rejected");
    expect(lost).toHaveLength(1);
    expect(lost[0]).toMatchObject({
      reason: { code: "CHECKPOINT_CONFLICT", holder: { pid: process.pid } },
    });
    expect(ran).toEqual(names);
  });

  test("of ten processes that resume a run at once, one finishes it, and no node runs twice", async () => {
    const store = new RecordingStore();
    await store.save(start("r"));
    const ran: string[] = [];
    const node: NodeFunction<Trail> = async (state, ctx) => {
      ran.push(ctx.node);
      return mark(state, ctx);
    };
    const nodes = Object.fromEntries(names.map((name) => [name, node]));
    const checkpoint = { store, interval: 1, preserve: true };
    const graphs = Array.from({ length: 10 }, () => linear(names, { checkpoint }, nodes));
    const outcomes = await Promise.allSettled(graphs.map((graph) => graph.resume("r")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(ran).toEqual(names);
  });
});

describe("rule 7: in a store without claims", () => {
  test.each([
    ["it is preserved", { preserve: true }],
    ["it is removed once done", { preserve: false }],
    ["a failed save is passed over", { onSaveError: "continue" as const }],
  ])("the process that saves a run later loses, when %s", async (_what, config) => {
    const { store, first, second, running, inside, goOn, ran, signal } = twoProcesses(config);
    const events = listen(first);
    await inside.opened;
    const final = await second.resume("r");
    expect(final.data.trail).toEqual(names);
    const saves = store.saved.length;
    const runs = await store.list();

    expect(signal()?.aborted).toBe(false);
    goOn.open();
    const error = await rejection(running, CheckpointConflictError);
    expect(error.runId).toBe("r");
    expect(error.expected).toBe(2);

    expect(signal()?.aborted).toBe(true);
    expect(signal()?.reason).toBe(error);
    expect(ran).toEqual([]);
    expect(store.saved).toHaveLength(saves);
    expect(await store.list()).toEqual(runs);
    expect(events.at(-1)).toMatchObject({
      type: "graph.fail",
      data: { code: "CHECKPOINT_CONFLICT", node: "a", step: 1 },
    });
  });

  test("the loser's failure does not overwrite what the winner saved", async () => {
    const own = new Error("boom");
    const { store, first, second, running, inside, goOn, signal } = twoProcesses({}, own);
    const events = listen(first);
    await inside.opened;
    await second.resume("r");
    const saves = store.saved.length;
    goOn.open();
    const error = await rejection(running, ExecutionError);
    expect(error.cause).toBe(own);
    expect(store.saved).toHaveLength(saves);
    expect(signal()?.reason).toBeInstanceOf(CheckpointConflictError);
    expect(events.at(-2)).toMatchObject({ type: "checkpoint.error", data: { action: "save" } });
    expect(await store.load("r")).toMatchObject({ status: "completed" });
  });

  test("the loser at an exit does not clean up what the winner needs", async () => {
    const store = new RecordingStore();
    const config = { checkpoint: { store: bare(store), interval: 5 } };
    const inside = gate();
    const goOn = gate();
    const slow: NodeFunction<Trail> = async (state, ctx) => {
      inside.open();
      await goOn.opened;
      return mark(state, ctx);
    };
    const loser = linear(["a", "b"], config, { b: slow }).execute(start("r"));
    await inside.opened;
    const paused = { ...config, breakpoints: { before: ["b"] } };
    await linear(["a", "b"], paused).resume("r");
    goOn.open();
    await rejection(loser, CheckpointConflictError);
    expect((await linear(["a", "b"], config).resume("r")).status).toBe("completed");
  });

  test("of two processes that start a run at once, one starts, and the other is told to resume", async () => {
    const store = new RecordingStore();
    const checkpoint = { store: bare(store), interval: 1, preserve: true };
    const graph = linear(names, { checkpoint });
    const outcomes = await Promise.allSettled([
      graph.execute(start("r")),
      graph.execute(start("r")),
    ]);
    const lost = outcomes.filter(({ status }) => status === "rejected");
    expect(lost).toHaveLength(1);
    expect(lost[0]).toMatchObject({
      reason: { code: "CHECKPOINT_CONFLICT", expected: 0, actual: 1, holder: undefined },
    });
    expect(store.saved.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5]);
  });

  test("of ten processes that resume a run at once, one finishes it, and no step is saved twice", async () => {
    const store = new RecordingStore();
    const checkpoint = { store: bare(store), interval: 1, preserve: true };
    await store.save(start("r"));
    const graphs = Array.from({ length: 10 }, () => linear(names, { checkpoint }));
    const outcomes = await Promise.allSettled(graphs.map((graph) => graph.resume("r")));
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected")
        expect(outcome.reason).toBeInstanceOf(CheckpointConflictError);
    }
    expect(store.saved.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4]);
  });
});

test("execute refuses a run that is already in the store, before a node runs", async () => {
  const store = new RecordingStore();
  const graph = linear(names, { checkpoint: { store, interval: 1, preserve: true } });
  const final = await graph.execute(start("r"));
  const events = listen(graph);
  for (const state of [start("r"), final, final.set("trail", [])]) {
    const error = await rejection(graph.execute(state), CheckpointConflictError);
    expect(error.message).toContain("resume it, delete it, or use another runId");
  }
  expect(events.map(({ type }) => type)).not.toContain("node.start");
  expect(store.saved).toHaveLength(5);
});
