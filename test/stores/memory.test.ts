import { describe, expect, test } from "vitest";
import { ConfigError, MemoryStore, SerializationError, State } from "waymark";
import { collectGarbage, linear, rejection, start, type Trail, thrown } from "../graphs.js";
import { collect } from "./plain.js";

/** The State after one more node. */
function stepped(state: State<Trail>): State<Trail> {
  const step = state.step + 1;
  return State.fromJSON<Trail>({ ...state.set("trail", [String(step)]).toJSON(), step });
}

/** The State inside a node that has not completed. */
function inside(state: State<Trail>): State<Trail> {
  const unfinished = { node: "n", results: {}, count: 0 };
  return State.fromJSON<Trail>({ ...state.toJSON(), unfinished });
}

/** Saves so many steps, each building on the one before. */
async function saveSteps(store: MemoryStore, runId: string, steps: number): Promise<State<Trail>> {
  let state = start(runId);
  for (let n = 0; n < steps; n++) state = await store.save(stepped(state));
  return state;
}

test("keeps immutable data by reference", async () => {
  const store = new MemoryStore();
  const saved = await start("r").set("trail", ["a"]).checkpoint(store);
  expect((await store.load<Trail>("r")).data).toBe(saved.data);
});

test("copies data that can't be frozen on save and on load", async () => {
  const store = new MemoryStore();
  const saved = await State.create({ bytes: new Uint8Array([1, 2]) }, { runId: "r" }).checkpoint(
    store,
  );
  (saved.data.bytes as Uint8Array)[0] = 99;
  const loaded = await store.load<{ bytes: Uint8Array }>("r");
  expect(loaded.data.bytes).toEqual(new Uint8Array([1, 2]));
  (loaded.data.bytes as Uint8Array)[1] = 99;
  const again = await store.load<{ bytes: Uint8Array }>("r");
  expect(again.data.bytes).toEqual(new Uint8Array([1, 2]));
  expect(again.checkpointId).toBe(saved.checkpointId);
});

test("refuses data that no checkpoint can hold, and stays unchanged", async () => {
  const store = new MemoryStore();
  const saved = await State.create<{ value: unknown }>({ value: 1 }, { runId: "r" }).checkpoint(
    store,
  );
  const bad = saved.set("value", () => {});
  expect((await rejection(bad.checkpoint(store), SerializationError)).path).toBe("data.value");
  expect(await store.history("r")).toHaveLength(1);
  expect((await saved.set("value", 2).checkpoint(store)).sequence).toBe(2);
});

test("leaves no run behind after a refused first save", async () => {
  const store = new MemoryStore();
  const bad = State.create<{ value: unknown }>({ value: Symbol("s") }, { runId: "r" });
  await rejection(bad.checkpoint(store), SerializationError);
  expect(await store.list()).toEqual([]);
});

test("a loaded State has no observer", async () => {
  const store = new MemoryStore();
  const told: string[] = [];
  const observed = State.create<Trail>(
    { trail: [] },
    { runId: "r", observer: ({ type }) => told.push(type) },
  );
  await observed.checkpoint(store);
  (await store.load<Trail>("r")).set("trail", ["x"]);
  expect(told).toEqual(["state.create"]);
});

test("two stores never share checkpoint ids", async () => {
  const ids = new Set<string>();
  for (let n = 0; n < 3; n++) {
    const store = new MemoryStore({ keep: Number.POSITIVE_INFINITY });
    await saveSteps(store, "r", 3);
    for (const { checkpointId } of await store.history("r")) ids.add(checkpointId);
  }
  expect(ids.size).toBe(9);
});

describe("keep", () => {
  test.each([
    [undefined, 5],
    [2, 2],
    [7, 7],
    [Number.POSITIVE_INFINITY, 40],
  ])("%s always holds the newest %i of 40 steps", async (keep, kept) => {
    const store = new MemoryStore(keep === undefined ? {} : { keep });
    let state = start("r");
    for (let n = 1; n <= 40; n++) {
      state = await store.save(stepped(state));
      const sequences = (await store.history("r")).map(({ sequence }) => sequence);
      expect(sequences).toEqual(Array.from({ length: Math.min(n, kept) }, (_, at) => n - at));
    }
    await expect(store.load("r", { checkpointId: state.checkpointId })).resolves.toBeDefined();
  });

  test("hides dropped checkpoints even while they are still in memory", async () => {
    const store = new MemoryStore({ keep: 2 });
    const first = await store.save(start("r"));
    await store.save(await store.save(first));
    await expect(store.load("r", { checkpointId: first.checkpointId })).rejects.toMatchObject({
      code: "CHECKPOINT_NOT_FOUND",
    });
  });

  test("given with a save overrides the store's", async () => {
    const store = new MemoryStore({ keep: 2 });
    let state = start("r");
    for (let n = 0; n < 9; n++) state = await store.save(stepped(state), { keep: 4 });
    expect(await store.history("r")).toHaveLength(4);
  });

  test.each<[what: string, next: (state: State<Trail>) => State<Trail>, atLeast: number]>([
    ["steps", stepped, 3],
    ["saves of one step", (state) => state.set("trail", [String(state.sequence)]), 1],
    ["progress saves", (state) => inside(state.set("trail", [String(state.sequence)])), 1],
  ])("bounds the store during a run of many %s", async (_what, next, atLeast) => {
    const store = new MemoryStore({ keep: 3 });
    const seen: WeakRef<object>[] = [];
    let state = start("r");
    for (let n = 0; n < 100; n++) {
      state = await store.save(next(state));
      seen.push(new WeakRef(state.data));
    }
    await collectGarbage();
    const alive = seen.filter((ref) => ref.deref() !== undefined).length;
    expect(alive).toBeGreaterThanOrEqual(atLeast);
    // Some more may gather, so that a save does not look at all of them.
    expect(alive).toBeLessThanOrEqual(25);
  });

  test.each([0, 1, -1, 1.5, Number.NaN, "2", null])("refuses %o", (keep) => {
    const error = thrown(() => new MemoryStore({ keep: keep as number }), ConfigError);
    expect(error.option).toBe("MemoryStore.keep");
  });
});

test("refuses unknown options", () => {
  const options = { max: 3 } as object;
  expect(thrown(() => new MemoryStore(options), ConfigError).option).toBe("MemoryStore.max");
});

test.each([undefined, null, {}, { runId: "r", sequence: 0 }])(
  "refuses to save %o",
  async (value) => {
    expect((await rejection(new MemoryStore().save(value as never), ConfigError)).option).toBe(
      "state",
    );
  },
);

test("imports all or nothing", async () => {
  const from = new MemoryStore();
  const first = await State.create({ n: 0 }, { runId: "run" }).checkpoint(from);
  await first.set("n", 1).checkpoint(from);
  const other = await State.create({ n: 7 }, { runId: "other" }).checkpoint(from);
  const exported = await collect(from.export("run"));
  expect(exported.map(({ state, parentId }) => [state.sequence, parentId])).toEqual([
    [1, ""],
    [2, first.checkpointId],
  ]);
  const to = new MemoryStore();
  const foreign = { state: other, parentId: "" };
  for (const wrong of [[...exported, foreign], exported.toReversed()]) {
    await expect(to.import(wrong)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
    expect(await to.list()).toEqual([]);
  }
  await to.import(exported);
  await expect(to.import(exported)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
  expect(await to.history("run")).toEqual(await from.history("run"));
});

test("lists its runs and removes old ones", async () => {
  const store = new MemoryStore();
  const graph = linear(["a"], { name: "g", checkpoint: { store, interval: 1, preserve: true } });
  await graph.execute(start("done"));
  await store.save(start("waiting"));
  expect((await store.runs()).map(({ runId }) => runId).sort()).toEqual(["done", "waiting"]);
  expect(await store.runs({ graph: "g" })).toMatchObject([
    { runId: "done", status: "completed", node: "a" },
  ]);
  expect(await store.prune({ maxRuns: 0, dryRun: true })).toEqual(["done"]);
  expect(await store.list()).toHaveLength(2);
  expect(await store.prune({ maxRuns: 0 })).toEqual(["done"]);
  expect(await store.list()).toEqual(["waiting"]);
});
