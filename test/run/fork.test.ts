import { describe, expect, test } from "vitest";
import {
  CheckpointConflictError,
  CheckpointNotFoundError,
  ConfigError,
  type NodeFunction,
  State,
} from "waymark";
import {
  finishedRun,
  linear,
  listen,
  mark,
  RecordingStore,
  rejection,
  start,
  stoppedRun,
  type Trail,
} from "../graphs.js";

const names = ["a", "b", "c"];

const done = () => finishedRun(names);

/** All that a store holds of a run. */
async function contents(store: RecordingStore, runId: string): Promise<unknown> {
  const ids = (await store.history(runId)).map(({ checkpointId }) => checkpointId);
  return Promise.all(
    ids.map(async (checkpointId) => (await store.load(runId, { checkpointId })).toJSON()),
  );
}

describe("fork", () => {
  test("saves a new run with a link to its parent and the changes merged in", async () => {
    const { graph, store, ids } = await done();
    const forked = await graph.fork("r", 1, { trail: ["changed"] });
    expect(forked.runId).not.toBe("r");
    expect(forked).toMatchObject({
      parent: { runId: "r", checkpointId: ids[1] },
      step: 1,
      checkpointNode: "a",
      status: "in_progress",
      reason: "fork",
      sequence: 1,
      visits: { a: 1 },
    });
    expect(ids).not.toContain(forked.checkpointId);
    expect(forked.data.trail).toEqual(["changed"]);
    expect((await store.load<Trail>(forked.runId)).toJSON()).toEqual(forked.toJSON());
    expect(await graph.history(forked.runId)).toMatchObject([
      {
        sequence: 1,
        step: 1,
        node: "a",
        reason: "fork",
        parentId: ids[1],
        checkpointId: forked.checkpointId,
      },
    ]);
  });

  test("runs nothing, and resume continues in the new run and keeps the link", async () => {
    const { graph, ids } = await done();
    const events = listen(graph);
    const forked = await graph.fork("r", 1, { trail: ["changed"] });
    expect(events.some(({ type }) => type === "node.start")).toBe(false);
    const final = await graph.resume(forked.runId);
    expect(final.data.trail).toEqual(["changed", "b", "c"]);
    expect(final.parent).toEqual({ runId: "r", checkpointId: ids[1] });
    expect((await graph.history(forked.runId)).map(({ sequence }) => sequence)).toEqual([
      4, 3, 2, 1,
    ]);
  });

  test("leaves the original unchanged, whatever the fork does", async () => {
    const { graph, store } = await done();
    const before = await contents(store, "r");
    const forked = await graph.fork("r", { step: 2 }, { trail: ["changed"] });
    await graph.resume(forked.runId);
    expect(await contents(store, "r")).toEqual(before);
  });

  test.each<
    [what: string, at: (ids: string[]) => Parameters<ReturnType<typeof linear>["fork"]>[1]]
  >([
    ["a step", () => 2],
    ["an id", (ids) => ids[2] ?? ""],
    ["an object with a step", () => ({ step: 2 })],
    ["an object with an id", (ids) => ({ checkpointId: ids[2] })],
  ])("takes %s", async (_what, at) => {
    const { graph, ids } = await done();
    expect(await graph.fork("r", at(ids))).toMatchObject({
      step: 2,
      parent: { checkpointId: ids[2] },
    });
    expect(await graph.rollback("r", at(ids))).toMatchObject({ step: 2, checkpointNode: "b" });
  });

  test.each([
    [0, "pending", ["a", "b", "c"]],
    [2, "in_progress", ["a", "b", "c"]],
    [3, "completed", ["a", "b", "c"]],
  ])("at step %i is %s and can be resumed", async (step, status, trail) => {
    const { graph } = await done();
    const forked = await graph.fork("r", step);
    expect(forked.status).toBe(status);
    expect((await graph.resume(forked.runId)).data.trail).toEqual(trail);
  });

  test("of a fork links to the fork", async () => {
    const { graph } = await done();
    const forked = await graph.fork("r", 1);
    const twice = await graph.fork(forked.runId, 1);
    expect(twice.parent).toEqual({ runId: forked.runId, checkpointId: forked.checkpointId });
  });

  test("can be executed from the entry point if it is at step 0", async () => {
    const { graph } = await done();
    const forked = await graph.fork("r", 0, { trail: ["x"] });
    expect((await graph.execute(forked)).data.trail).toEqual(["x", "a", "b", "c"]);
  });
});

describe("rollback", () => {
  test("appends the old State to the history and rewrites nothing", async () => {
    const { graph, store, ids } = await done();
    const before = (await contents(store, "r")) as unknown[];
    const back = await graph.rollback("r", 1);
    expect(back).toMatchObject({
      runId: "r",
      sequence: 5,
      step: 1,
      checkpointNode: "a",
      status: "in_progress",
      reason: "rollback",
      visits: { a: 1 },
      parent: undefined,
    });
    expect(back.data.trail).toEqual(["a"]);
    const [newest, ...rest] = (await contents(store, "r")) as unknown[];
    expect(newest).toEqual(back.toJSON());
    expect(rest).toEqual(before);
    expect((await graph.history("r"))[0]).toMatchObject({ parentId: ids[1], reason: "rollback" });
  });

  test("sets back where resume continues, with a higher sequence", async () => {
    const { graph, store } = await done();
    await graph.rollback("r", 1);
    const started: string[] = [];
    graph.on("node.start", ({ data }) => started.push(data.node));
    const final = await graph.resume("r");
    expect(started).toEqual(["b", "c"]);
    expect(final.data.trail).toEqual(names);
    expect(store.saved.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(store.log.slice(4, 6)).toEqual(["rollback:a@1", "resume:a@1"]);
  });

  test("clears a failed run's error", async () => {
    const store = await stoppedRun(names, "b");
    const config = { checkpoint: { store, interval: 1 } };
    const back = await linear(names, config).rollback("r", 1);
    expect(back).toMatchObject({ status: "in_progress", error: undefined });
    expect((await linear(names, config).resume("r")).data.trail).toEqual(names);
  });

  test("by an older State loses against a writer in between", async () => {
    const { graph, store } = await done();
    const old = await store.load<Trail>("r");
    await graph.rollback("r", 1);
    await expect(old.checkpoint(store)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
  });
});

test("fork and rollback emit checkpoint.save", async () => {
  const { graph } = await done();
  const events = listen(graph);
  const forked = await graph.fork("r", 1);
  const back = await graph.rollback("r", 2);
  const saves = events.filter(({ type }) => type === "checkpoint.save");
  expect(saves.map(({ runId, data }) => ({ runId, ...data }))).toMatchObject([
    {
      runId: forked.runId,
      reason: "fork",
      node: "a",
      step: 1,
      sequence: 1,
      checkpointId: forked.checkpointId,
    },
    {
      runId: "r",
      reason: "rollback",
      node: "b",
      step: 2,
      sequence: 5,
      checkpointId: back.checkpointId,
    },
  ]);
});

test("an active run can't be rolled back, and is not disturbed", async () => {
  const store = new RecordingStore();
  let refused: unknown;
  const b: NodeFunction<Trail> = async (state, context) => {
    refused = await graph.rollback("r", 1).catch((error: unknown) => error);
    return mark(state, context);
  };
  const config = { checkpoint: { store, interval: 1, preserve: true } };
  const graph = linear(["a", "b", "c"], config, { b });
  expect((await graph.execute(start("r"))).data.trail).toEqual(["a", "b", "c"]);
  expect(refused).toBeInstanceOf(CheckpointConflictError);
  expect(refused).toMatchObject({ holder: { pid: process.pid } });
  expect(await graph.rollback("r", 1)).toMatchObject({ step: 1, status: "in_progress" });
});

test("rollback loses against a writer between its load and its save", async () => {
  const { graph, store } = await done();
  const load = store.load.bind(store);
  let loads = 0;
  store.load = async <D extends object>(...args: Parameters<typeof load>) => {
    const state = await load<D>(...args);
    if (++loads === 2) await store.save(state);
    return state;
  };
  await rejection(graph.rollback("r", 1), CheckpointConflictError);
  expect(await store.load("r")).toMatchObject({ sequence: 5, step: 3 });
});

test.each([undefined, null, {}, { steps: 1 }, true])(
  "fork and rollback refuse %j as a checkpoint",
  async (at) => {
    const { graph } = await done();
    expect((await rejection(graph.fork("r", at as never), ConfigError)).option).toBe("at");
    expect((await rejection(graph.rollback("r", at as never), ConfigError)).option).toBe("at");
  },
);

test("fork and rollback fail on a missing checkpoint", async () => {
  const { graph, store } = await done();
  await rejection(graph.fork("r", 9), CheckpointNotFoundError);
  await rejection(graph.rollback("r", "no-such-id"), CheckpointNotFoundError);
  await rejection(graph.fork("nobody", 0), CheckpointNotFoundError);
  expect(store.saved).toHaveLength(4);
});

test("fork and rollback fail without checkpointing", async () => {
  await rejection(linear(["a"]).fork("r", 0), ConfigError);
  await rejection(linear(["a"]).rollback("r", 0), ConfigError);
});

test("changes that are not data are refused before anything is saved", async () => {
  const { graph, store } = await done();
  await rejection(graph.fork("r", 1, 7 as never), ConfigError);
  expect(store.saved).toHaveLength(4);
  expect(await store.list()).toEqual(["r"]);
  expect(State.fromJSON((await store.load("r")).toJSON()).step).toBe(3);
});
