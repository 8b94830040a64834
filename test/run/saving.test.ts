import { describe, expect, test } from "vitest";
import { CheckpointNotFoundError, type NodeFunction, type SaveOptions, type State } from "waymark";
import { gate, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

const five = ["a", "b", "c", "d", "e"];

describe("saves", () => {
  test.each<[interval: number, preserve: boolean, log: string[]]>([
    [0, false, []],
    [0, true, []],
    [
      1,
      false,
      ["start:@0", "interval:a@1", "interval:b@2", "interval:c@3", "interval:d@4", "complete:e@5"],
    ],
    [
      1,
      true,
      ["start:@0", "interval:a@1", "interval:b@2", "interval:c@3", "interval:d@4", "complete:e@5"],
    ],
    [3, false, ["start:@0", "interval:c@3", "complete:e@5"]],
    [3, true, ["start:@0", "interval:c@3", "complete:e@5"]],
    [5, true, ["start:@0", "complete:e@5"]],
    [9, true, ["start:@0", "complete:e@5"]],
  ])("with interval %i, preserve %s", async (interval, preserve, log) => {
    const store = new RecordingStore();
    const graph = linear(five, { checkpoint: { store, interval, preserve } });
    const final = await graph.execute(start("r"));
    expect(store.log).toEqual(log);
    expect(final).toMatchObject({ checkpointNode: "e", step: 5, status: "completed" });
    expect(await store.list()).toEqual(interval > 0 && preserve ? ["r"] : []);
  });

  test("each checkpoint with its own id, the next sequence, and the data at that time", async () => {
    const store = new RecordingStore();
    await linear(["a", "b"], { checkpoint: { store, interval: 1 } }).execute(start());
    expect(store.saved.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    expect(new Set(store.saved.map(({ checkpointId }) => checkpointId)).size).toBe(3);
    expect(store.saved.map(({ data }) => data.trail)).toEqual([[], ["a"], ["a", "b"]]);
    expect(store.saved.map(({ status }) => status)).toEqual([
      "in_progress",
      "in_progress",
      "completed",
    ]);
    expect(store.saved.map(({ visits }) => visits)).toEqual([{}, { a: 1 }, { a: 1, b: 1 }]);
  });

  test("a checkpoint that names the exit node at the end of a preserved run", async () => {
    const store = new RecordingStore();
    const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, preserve: true } });
    const final = await graph.execute(start());
    const kept = await store.load<Trail>(final.runId);
    expect(kept).toMatchObject({ checkpointNode: "b", status: "completed", step: 2 });
    expect(kept.toJSON()).toEqual(final.toJSON());
  });

  test("nothing of a completed run that is not preserved", async () => {
    const graph = linear(["a", "b"], { checkpoint: { store: new RecordingStore(), interval: 1 } });
    const { runId } = await graph.execute(start());
    await rejection(graph.resume(runId), CheckpointNotFoundError);
  });

  test("in the history of a State that was saved before it ran", async () => {
    const store = new RecordingStore();
    const saved = await start("r").checkpoint(
      store as { save: (state: State<Trail>) => Promise<State<Trail>> },
    );
    await linear(["a"], { checkpoint: { store, interval: 1 } }).execute(saved);
    expect(store.saved.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  });
});

test("rule 1: the first save is acknowledged before the first node starts", async () => {
  const order: string[] = [];
  const store = new RecordingStore();
  const slow = gate();
  const asked = gate();
  store.beforeSave = async () => {
    asked.open();
    await slow.opened;
  };
  store.afterSave = () => order.push("saved");
  const a: NodeFunction<Trail> = (state, ctx) => {
    order.push("a");
    return mark(state, ctx);
  };
  const running = linear(["a", "b"], { checkpoint: { store, interval: 5 } }, { a }).execute(
    start(),
  );
  await asked.opened;
  expect(order).toEqual([]);
  slow.open();
  await running;
  expect(order).toEqual(["saved", "a", "saved"]);
});

test("rule 1: a run that dies in its first node can be resumed", async () => {
  const store = new RecordingStore();
  const dead = gate();
  const reached = gate();
  const a: NodeFunction<Trail> = async (state, ctx) => {
    reached.open();
    await dead.opened;
    return mark(state, ctx);
  };
  const config = { checkpoint: { store, interval: 1 } };
  void linear(["a", "b"], config, { a }).execute(start("r"));
  await reached.opened;
  await store.forgetClaims();
  const final = await linear(["a", "b"], config).resume("r");
  expect(final.data.trail).toEqual(["a", "b"]);
});

test("rule 2: a node's result is acknowledged before its successor starts", async () => {
  const order: string[] = [];
  const store = new RecordingStore();
  const gates = new Map(five.map((name) => [name, gate()]));
  const asked = new Map(five.map((name) => [name, gate()]));
  store.beforeSave = async ({ checkpointNode }) => {
    asked.get(checkpointNode)?.open();
    await gates.get(checkpointNode)?.opened;
  };
  store.afterSave = ({ checkpointNode }) => order.push(`saved ${checkpointNode}`);
  const tell: NodeFunction<Trail> = async (state, ctx) => {
    order.push(`run ${ctx.node}`);
    return mark(state, ctx);
  };
  const nodes = Object.fromEntries(five.map((name) => [name, tell]));
  const running = linear(five, { checkpoint: { store, interval: 1 } }, nodes).execute(start());
  for (const [at, name] of five.entries()) {
    await asked.get(name)?.opened;
    // Whatever was going to start without waiting for the save had the time to.
    await new Promise((resolve) => setImmediate(resolve));
    expect(order).toHaveLength(2 + 2 * at);
    expect(order.at(-1)).toBe(`run ${name}`);
    gates.get(name)?.open();
  }
  await running;
  expect(order).toEqual(["saved ", ...five.flatMap((name) => [`run ${name}`, `saved ${name}`])]);
});

test("the result is returned once the final save is acknowledged", async () => {
  const store = new RecordingStore();
  const slow = gate();
  const asked = gate();
  store.beforeSave = async ({ status }) => {
    if (status !== "completed") return;
    asked.open();
    await slow.opened;
  };
  let done = false;
  const graph = linear(["a"], { checkpoint: { store, interval: 7, preserve: true } });
  const running = graph.execute(start()).then(() => {
    done = true;
  });
  await asked.opened;
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toBe(false);
  slow.open();
  await running;
  expect(store.log.at(-1)).toBe("complete:a@1");
});

test("a store gets the config's keep and a function to emit events", async () => {
  const data = { file: "f", expected: "1", actual: "2" };
  class TellingStore extends RecordingStore {
    override save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>> {
      expect(options?.keep).toBe(3);
      options?.emit?.("checkpoint.quarantine", data);
      return super.save(state, options);
    }
  }
  const checkpoint = { store: new TellingStore(), interval: 1, keep: 3 };
  const graph = linear(["a"], { name: "g", checkpoint });
  const seen: object[] = [];
  graph.on("checkpoint.quarantine", (event) => seen.push(event));
  const { runId } = await graph.execute(start());
  expect(seen).toHaveLength(2);
  expect(seen[0]).toMatchObject({ source: "g", runId, data });
});
