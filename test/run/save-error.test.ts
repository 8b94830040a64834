import { describe, expect, test } from "vitest";
import {
  CheckpointSaveError,
  type CheckpointStore,
  type GraphConfig,
  type NodeFunction,
  pause,
  SerializationError,
  State,
} from "waymark";
import { linear, listen, RecordingStore, rejection, start, type Trail } from "../graphs.js";

const full = new Error("disk full");

/** A store whose saves fail where `fails` says so. */
function failing(fails: (state: State<Trail>) => boolean): RecordingStore {
  const store = new RecordingStore();
  store.beforeSave = (state) => {
    if (fails(state)) throw full;
  };
  return store;
}

const abc = (store: CheckpointStore, checkpoint: GraphConfig["checkpoint"] = {}) =>
  linear(["a", "b", "c"], { checkpoint: { store, interval: 1, preserve: true, ...checkpoint } });

describe("a failed save stops the run", () => {
  test.each([
    ["at the start", 0, "", "the first checkpoint", [], []],
    ["after a node", 1, "a", 'the checkpoint after "a"', ["a"], ["start:@0"]],
    [
      "at the end",
      3,
      "c",
      'the checkpoint after "c"',
      ["a", "b", "c"],
      ["start:@0", "interval:a@1", "interval:b@2"],
    ],
  ])("%s, with no further attempt", async (_when, step, nodeName, which, path, log) => {
    let asked = 0;
    const store = failing((state) => ++asked > 0 && state.step === step);
    const error = await rejection(abc(store).execute(start("r")), CheckpointSaveError);
    expect(error.cause).toBe(full);
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE", nodeName, path });
    expect(error.message).toBe(`${which} could not be saved: disk full`);
    expect(asked).toBe(log.length + 1);
    expect(error.state).toMatchObject({ runId: "r", step, data: { trail: path } });
    expect(store.log).toEqual(log);
  });

  test("and resume continues after the last acknowledged save", async () => {
    const store = failing((state) => state.step === 2);
    const graph = abc(store);
    await rejection(graph.execute(start("r")), CheckpointSaveError);
    store.beforeSave = () => {};
    const final = await graph.resume("r");
    expect(final.data.trail).toEqual(["a", "b", "c"]);
    expect(store.log).toEqual([
      "start:@0",
      "interval:a@1",
      "resume:a@1",
      "interval:b@2",
      "complete:c@3",
    ]);
  });

  test("even if only its answer was lost, and nothing runs twice", async () => {
    const store = new RecordingStore();
    store.afterSave = ({ step }) => {
      if (step === 2) throw full;
    };
    const graph = abc(store);
    await rejection(graph.execute(start("r")), CheckpointSaveError);
    store.afterSave = () => {};
    const started: string[] = [];
    graph.on("node.start", ({ data }) => started.push(data.node));
    expect((await graph.resume("r")).data.trail).toEqual(["a", "b", "c"]);
    expect(started).toEqual(["c"]);
  });

  test("even if the store throws synchronously", async () => {
    const store = new RecordingStore();
    store.save = () => {
      throw full;
    };
    expect((await rejection(abc(store).execute(start()), CheckpointSaveError)).cause).toBe(full);
  });

  test("with the store's own CheckpointSaveError, not wrapped in another", async () => {
    const inner = new CheckpointSaveError("no", {
      nodeName: "",
      state: start(),
      path: [],
      cause: full,
    });
    const store = new RecordingStore();
    store.beforeSave = () => {
      throw inner;
    };
    expect((await rejection(abc(store).execute(start()), CheckpointSaveError)).cause).toBe(full);
  });

  test("and data that no checkpoint can hold is refused at the first save", async () => {
    const data = { trail: [(() => {}) as unknown as string] };
    const running = abc(new RecordingStore()).execute(State.create<Trail>(data));
    const { cause } = await rejection(running, CheckpointSaveError);
    expect(cause).toBeInstanceOf(SerializationError);
    expect((cause as SerializationError).path).toBe("data.trail[0]");
  });
});

test.each([undefined, null, "saved", {}, { checkpointId: "x", sequence: 1 }])(
  "a save that resolves to %o counts as failed",
  async (value) => {
    const store = new RecordingStore();
    store.save = async () => value as never;
    const error = await rejection(abc(store).execute(start()), CheckpointSaveError);
    expect(error.message).toContain("store.save() must return a State");
  },
);

describe('onSaveError: "continue"', () => {
  test("continues without the save, emits an event, and saves again later", async () => {
    const store = failing((state) => state.step === 0 || state.step === 2);
    const graph = abc(store, { onSaveError: "continue" });
    const events = listen(graph);
    const final = await graph.execute(start("r"));
    expect(final.data.trail).toEqual(["a", "b", "c"]);
    expect(store.log).toEqual(["interval:a@1", "complete:c@3"]);
    expect(store.saved.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(
      events.filter(({ type }) => type === "checkpoint.error").map(({ data }) => data),
    ).toEqual([
      { action: "save", node: "", error: "disk full" },
      { action: "save", node: "b", error: "disk full" },
    ]);
  });

  test("returns the result of a run even if every save fails", async () => {
    const store = failing(() => true);
    const final = await abc(store, { onSaveError: "continue" }).execute(start());
    expect(final).toMatchObject({ status: "completed", step: 3, checkpointId: "", sequence: 0 });
  });

  test("does not let fork or rollback return an unsaved State", async () => {
    const store = new RecordingStore();
    const graph = abc(store, { onSaveError: "continue" });
    const { runId } = await graph.execute(start());
    store.beforeSave = () => {
      throw full;
    };
    for (const save of [() => graph.fork(runId, 1), () => graph.rollback(runId, 1)]) {
      const error = await rejection(save(), CheckpointSaveError);
      expect(error.cause).toBe(full);
      expect(error.state.step).toBe(1);
    }
  });
});

test("input that can't be saved is not accepted: the run stays paused", async () => {
  const store = new RecordingStore();
  const a: NodeFunction<Trail> = (state) => pause(state, { reason: "look", into: "trail" });
  const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, preserve: true } }, { a });
  await graph.execute(start("r"));
  store.beforeSave = () => {
    throw full;
  };
  const error = await rejection(graph.resume("r", { input: ["x"] }), CheckpointSaveError);
  expect(error.cause).toBe(full);
  expect(await store.load("r")).toMatchObject({ status: "paused", checkpointNode: "a" });
  store.beforeSave = () => {};
  expect((await graph.resume("r", { input: ["x"] })).data.trail).toEqual(["x", "b"]);
});

describe("cleaning up after a run", () => {
  test("that fails emits an event, and the result is returned", async () => {
    const store = new RecordingStore();
    store.delete = async () => {
      throw full;
    };
    const graph = abc(store, { preserve: false });
    const events = listen(graph);
    const final = await graph.execute(start());
    expect(final.status).toBe("completed");
    expect(events.at(-2)).toMatchObject({
      type: "checkpoint.error",
      data: { action: "delete", node: "c", error: "disk full" },
    });
    expect(events.at(-1)?.type).toBe("graph.complete");
  });

  test("that did not happen lets resume return the result", async () => {
    const store = new RecordingStore();
    store.delete = async () => {
      throw full;
    };
    const graph = abc(store, { preserve: false });
    const final = await graph.execute(start("r"));
    expect((await graph.resume("r")).toJSON()).toEqual(final.toJSON());
  });
});
