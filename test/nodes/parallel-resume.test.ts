import { describe, expect, test } from "vitest";
import {
  CheckpointSaveError,
  ExecutionError,
  type ItemContext,
  MemoryStore,
  parallel,
  State,
  StateGraph,
} from "waymark";
import { gate, rejection } from "../graphs.js";
import { Counts, finishedItems, MortalStore, only, remembered } from "./nodes.js";
import { doubling, list, type Sum, settled, start } from "./numbers.js";

const saving = (store: MemoryStore) => ({ checkpoint: { store, interval: 1 } });

describe("a crashed parallel node", () => {
  test.each(list(13))("after %i more saves runs only the missing items", async (lives) => {
    const store = new MemoryStore();
    const counts = new Counts();
    const node = () =>
      doubling(
        list(12),
        async (_state, item) => {
          counts.add(item);
          await settled();
          return item;
        },
        { concurrency: 2 },
      );
    const mortal = new MortalStore(store, 1 + lives);
    await rejection(only(node(), saving(mortal)).execute(start()), CheckpointSaveError);
    const finished = await finishedItems(store, "r");
    const before = counts.all;
    const final = await only(node(), saving(store)).resume("r");
    expect(final.data.out).toEqual(list(12));
    for (const item of list(12)) {
      const again = finished.includes(item) ? 0 : 1;
      expect([item, counts.of(item)]).toEqual([item, (before[item] ?? 0) + again]);
    }
  });

  test("stops if nothing can be saved any more", async () => {
    const counts = new Counts();
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      counts.add(item);
      await settled();
      return item;
    };
    const store = new MortalStore(new MemoryStore(), 1);
    const graph = only(doubling(list(100), worker, { concurrency: 1 }), saving(store));
    await rejection(graph.execute(start()), CheckpointSaveError);
    expect(Object.keys(counts.all).length).toBeLessThan(4);
  });

  test("continues its progress where it was", async () => {
    const store = new MemoryStore();
    const told: string[] = [];
    let online = false;
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      if (item === 2 && !online) throw new Error("offline");
      return item;
    };
    const onProgress = (completed: number, total: number) => told.push(`${completed}/${total}`);
    const graph = only(doubling(list(4), worker, { concurrency: 1, onProgress }), saving(store));
    await rejection(graph.execute(start()), ExecutionError);
    online = true;
    await graph.resume("r");
    expect(told).toEqual(["1/4", "2/4", "3/4", "4/4"]);
  });
});

describe("saved results", () => {
  test("include a slow item as soon as it completes", async () => {
    const store = new MemoryStore();
    const gates = list(4).map(() => gate());
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      await gates[item]?.opened;
      return item;
    };
    const run = only(doubling(list(4), worker), saving(store)).execute(start());
    for (const [at, item] of [2, 0, 3].entries()) {
      gates[item]?.open();
      await settled();
      expect(await finishedItems(store, "r")).toEqual([2, 0, 3].slice(0, at + 1).sort());
    }
    gates[1]?.open();
    await run;
  });

  test("of a failed run are those of all items that succeeded", async () => {
    const store = new MemoryStore();
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      if (item === 7) throw new Error("boom");
      return item;
    };
    const graph = only(doubling(list(9), worker, { concurrency: 1 }), saving(store));
    await rejection(graph.execute(start()), ExecutionError);
    expect(await finishedItems(store, "r")).toEqual(list(7));
    expect((await store.load("r")).status).toBe("failed");
  });

  test("are removed when the node completes", async () => {
    const store = new MemoryStore();
    const graph = new StateGraph<Sum, string>(saving(store))
      .addNode("work", doubling(list(300)))
      .addNode("stop", () => {
        throw new Error("stop");
      })
      .addEdge("work", "stop")
      .setEntryPoint("work")
      .setExitPoint("stop");
    await rejection(graph.execute(start()), ExecutionError);
    expect(await remembered(store, "r")).toEqual({});
    expect((await store.load<Sum>("r")).data.out).toHaveLength(300);
  });

  test("of many pieces are combined", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    let online = false;
    const worker = async (_state: State<Sum>, item: number, context: ItemContext<Sum>) => {
      counts.add(item);
      if (item === 1000 && !online) throw new Error("boom");
      return context.once("twice", () => item * 2);
    };
    const graph = only(doubling(list(1001), worker, { concurrency: 1 }), saving(store));
    await rejection(graph.execute(start()), ExecutionError);
    expect(await finishedItems(store, "r")).toEqual(list(1000));
    const keys = Object.keys(await remembered(store, "r"));
    expect(keys.filter((key) => /^results \d+$/.test(key)).length).toBeGreaterThan(2);
    // What the items did once is not needed any more.
    expect(keys.filter((key) => !key.startsWith("results"))).toEqual([]);
    online = true;
    expect((await graph.resume("r")).data.out).toEqual(list(1001).map((item) => item * 2));
    expect(Object.values(counts.all)).toEqual(list(1001).map((item) => (item === 1000 ? 2 : 1)));
  });
});

test("a hundred thousand items need few saves, and each is written at most twice", async () => {
  let written = 0;
  let most = 0;
  class Measured extends MortalStore {
    override async save<D extends object>(state: State<D>): Promise<State<D>> {
      most = Math.max(most, Object.keys(state.toJSON().unfinished?.results ?? {}).length);
      return super.save(state);
    }
  }
  const store = new Measured(new MemoryStore());
  const node = parallel<{ sum: number }, number, number>(
    list(100_000),
    async (_state, item) => item,
    {
      onProgress: () => written++,
      merge: (_state, results) => ({ sum: results.reduce((sum, one) => sum + one, 0) }),
    },
  );
  const final = await only(node, saving(store)).execute(State.create({ sum: 0 }));
  expect(final.data.sum).toBe(4_999_950_000);
  expect(written).toBe(100_000);
  expect(store.saves).toBeLessThan(20_000);
  // 391 pieces, and what is not a whole one yet.
  expect(most).toBeLessThan(391 + 256);
});

test("a slow store does not fall far behind", async () => {
  let behind = 0;
  let most = 0;
  class Slow extends MemoryStore {
    override async save<D extends object>(state: State<D>): Promise<State<D>> {
      await settled();
      const saved = await super.save(state);
      behind = 0;
      return saved;
    }
  }
  const worker = async (_state: State<Sum>, item: number): Promise<number> => {
    most = Math.max(most, ++behind);
    return item;
  };
  const graph = only(doubling(list(5000), worker), saving(new Slow()));
  expect((await graph.execute(start())).data.out).toEqual(list(5000));
  // At most 256, or an eighth of all, besides those that are running.
  expect(most).toBeLessThan(1300);
});

describe("pauses of items", () => {
  const asking = (counts: Counts) =>
    parallel<{ said: readonly unknown[] }, string, unknown>(
      ["a", "b", "c"],
      async (_state, item, context) => {
        counts.add(item);
        if (item === "b") return "no need";
        return context.pause(`ok ${item}`, { reason: `look at ${item}`, ask: item });
      },
      { concurrency: 1, merge: (_state, said) => ({ said }) },
    );
  const data = () => State.create({ said: [] as readonly unknown[] }, { runId: "r" });

  test("let the other items finish, and pause the run once", async () => {
    const counts = new Counts();
    const store = new MemoryStore();
    const graph = only(asking(counts), saving(store));
    const paused = await graph.execute(data());
    expect(paused.status).toBe("paused");
    expect(paused.pauses).toEqual([
      { name: "ok a", reason: "look at a", ask: "a" },
      { name: "ok c", reason: "look at c", ask: "c" },
    ]);
    expect(await finishedItems(store, "r")).toEqual([1]);
    const final = await only(asking(counts), saving(store)).resume("r", {
      input: { "ok a": 1, "ok c": 3 },
    });
    expect(final.data.said).toEqual([1, "no need", 3]);
    expect(counts.all).toEqual({ a: 2, b: 1, c: 2 });
  });

  test("may be answered one by one", async () => {
    const counts = new Counts();
    const graph = only(asking(counts), saving(new MemoryStore()));
    await graph.execute(data());
    const still = await graph.resume("r", { input: { "ok c": 3 } });
    expect(still.pauses.map(({ name }) => name)).toEqual(["ok a"]);
    const final = await graph.resume("r", { input: 1 });
    expect(final.data.said).toEqual([1, "no need", 3]);
    expect(counts.all).toEqual({ a: 3, b: 1, c: 2 });
  });

  test("yield to failures if all remaining items failed or pause", async () => {
    let online = false;
    const node = parallel<{ said: readonly unknown[] }, number, unknown>(
      list(3),
      async (_state, item, context) => {
        if (item === 0 && !online) throw new Error("offline");
        return item === 1 ? context.pause("ok", { reason: "look", ask: "?" }) : item;
      },
      { failFast: false, merge: (_state, said) => ({ said }) },
    );
    const graph = only(node, saving(new MemoryStore()));
    expect((await graph.execute(data())).status).toBe("paused");
    online = true;
    expect((await graph.resume("r", { input: "yes" })).data.said).toEqual([0, "yes", 2]);
  });
});

test("results of once belong to their item, under any key", async () => {
  const store = new MemoryStore();
  const charged = new Counts();
  let online = false;
  const worker = async (_state: State<Sum>, item: number, context: ItemContext<Sum>) => {
    const receipt = await context.once("charge", () => {
      charged.add(context.idempotencyKey);
      return item * 10;
    });
    await context.remember("note", item);
    expect(context.recall("note")).toBe(item);
    context.forget("note");
    if (!online) throw new Error("offline");
    return receipt;
  };
  const graph = only(doubling(list(3), worker, { failFast: false }), saving(store));
  await rejection(graph.execute(start()), ExecutionError);
  expect(Object.keys(await remembered(store, "r")).sort()).toEqual([
    "[0] charge",
    "[1] charge",
    "[2] charge",
  ]);
  online = true;
  expect((await graph.resume("r")).data.out).toEqual([0, 10, 20]);
  expect(charged.all).toEqual({ "r:0:work[0]": 1, "r:0:work[1]": 1, "r:0:work[2]": 1 });
});

describe("saves", () => {
  test.each([
    ["item", 11],
    ["layer", 2],
    [4, 4],
  ] as const)("%j makes %i checkpoints of nine consecutive items", async (saves, count) => {
    const store = new MortalStore(new MemoryStore());
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      await settled();
      return item;
    };
    const node = doubling(list(9), worker, { concurrency: 1, saves });
    await only(node, saving(store)).execute(start());
    expect(store.saves).toBe(count);
  });

  test.each(["layer", 4] as const)("%j loses no completed item when one fails", async (saves) => {
    const store = new MemoryStore();
    const counts = new Counts();
    let online = false;
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      counts.add(item);
      if (item === 7 && !online) throw new Error("offline");
      return item;
    };
    const graph = only(doubling(list(9), worker, { concurrency: 1, saves }), saving(store));
    await rejection(graph.execute(start()), ExecutionError);
    expect(await finishedItems(store, "r")).toEqual(list(7));
    online = true;
    await graph.resume("r");
    expect(Object.values(counts.all)).toEqual(list(9).map((item) => (item === 7 ? 2 : 1)));
  });
});
