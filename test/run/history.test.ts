import { describe, expect, test } from "vitest";
import {
  type CheckpointAt,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  type State,
} from "waymark";
import type { StoreContext } from "../../src/checkpoint/store.js";
import {
  bare,
  finishedRun,
  linear,
  listen,
  RecordingStore,
  rejection,
  start,
  stoppedRun,
} from "../graphs.js";

const names = ["a", "b", "c"];

const done = () => finishedRun(names);

describe("history", () => {
  test("is newest first, each checkpoint with its parent", async () => {
    const { graph, ids, store } = await done();
    expect(await graph.history("r")).toEqual(
      [
        { sequence: 1, step: 0, node: "", status: "in_progress", reason: "start", parentId: "" },
        {
          sequence: 2,
          step: 1,
          node: "a",
          status: "in_progress",
          reason: "interval",
          parentId: ids[0],
        },
        {
          sequence: 3,
          step: 2,
          node: "b",
          status: "in_progress",
          reason: "interval",
          parentId: ids[1],
        },
        {
          sequence: 4,
          step: 3,
          node: "c",
          status: "completed",
          reason: "complete",
          parentId: ids[2],
        },
      ]
        .map((entry, at) => ({
          ...entry,
          checkpointId: ids[at],
          phase: "",
          timestamp: store.saved[at]?.timestamp,
          savedAt: store.saved[at]?.savedAt,
          unfinished: false,
          metadata: {},
        }))
        .reverse(),
    );
  });

  test("of an unknown run is empty", async () => {
    const { graph, store } = await done();
    expect(await graph.history("nobody")).toEqual([]);
    const plain = linear(names, { checkpoint: { store: bare(store), interval: 1 } });
    expect(await plain.history("nobody")).toEqual([]);
  });

  test("of a store without history is its newest checkpoint", async () => {
    const { store, ids } = await done();
    const graph = linear(names, { checkpoint: { store: bare(store), interval: 1 } });
    const history = await graph.history("r");
    expect(history).toHaveLength(1);
    expect(history[0]).toMatchObject({ sequence: 4, step: 3, node: "c", checkpointId: ids[3] });
  });

  test("of a failing store is its error", async () => {
    const store = bare(new RecordingStore());
    store.load = async () => {
      throw new RangeError("down");
    };
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    await rejection(graph.history("r"), RangeError);
  });
});

test("events of a store's load reach the graph's listeners", async () => {
  const { graph, store } = await done();
  const data = { file: "f", expected: "1", actual: "2" };
  const load = store.load.bind(store);
  store.load = <D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>> => {
    context?.emit?.("checkpoint.quarantine", data);
    return load<D>(runId, at);
  };
  const events = listen(graph);
  await graph.resume("r");
  expect(events[0]).toMatchObject({ type: "checkpoint.quarantine", runId: "r", data });
});

describe("a store that loads a wrong value", () => {
  test.each([undefined, null, {}, "state"])(
    "such as %o causes a clear TypeError",
    async (value) => {
      const store = bare(new RecordingStore());
      store.load = async () => value as never;
      const graph = linear(["a"], { checkpoint: { store, interval: 1 } });
      expect((await rejection(graph.resume("r"), TypeError)).message).toContain(
        "store.load() must return a State",
      );
      await rejection(graph.history("r"), TypeError);
    },
  );

  test("of another run is reported as corrupt", async () => {
    const store = bare(new RecordingStore());
    store.load = async () => start("other") as never;
    const graph = linear(["a"], { checkpoint: { store, interval: 1 } });
    const error = await rejection(graph.resume("r"), CheckpointCorruptionError);
    expect(error).toMatchObject({ expected: "r", actual: "other" });
  });

  test("instead of the requested checkpoint is reported as not found", async () => {
    const inner = await stoppedRun(names, "c");
    const store = bare(inner);
    store.load = (runId) => inner.load(runId);
    const graph = linear(names, { checkpoint: { store, interval: 1 } });
    await rejection(graph.resume("r", { step: 1 }), CheckpointNotFoundError);
  });
});
