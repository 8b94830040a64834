import { describe, expect, test, vi } from "vitest";
import {
  ExecutionError,
  FatalError,
  type ItemContext,
  MemoryStore,
  parallel,
  type State,
} from "waymark";
import { useFakeClock } from "waymark/testing";
import { type Gate, gate, rejection } from "../graphs.js";
import { Counts, only } from "./nodes.js";
import { double, doubling, failing, list, type Sum, settled, start } from "./numbers.js";

describe("a stopped parallel node", () => {
  const config = () => ({ checkpoint: { store: new MemoryStore(), interval: 1 } });

  test("by a signal aborts its items, and a resume runs only the missing ones", async () => {
    const controller = new AbortController();
    const counts = new Counts();
    const worker = async (_state: State<Sum>, item: number, { signal }: ItemContext<Sum>) => {
      counts.add(item);
      if (item === 2) controller.abort(new Error("enough"));
      signal.throwIfAborted();
      return item;
    };
    const graph = only(doubling(list(5), worker, { concurrency: 1 }), config());
    const failure = await rejection(
      graph.execute(start(), { signal: controller.signal }),
      ExecutionError,
    );
    expect(failure).toMatchObject({ code: "ABORTED", cause: controller.signal.reason });
    expect((await graph.resume("r")).data.out).toEqual(list(5));
    expect(counts.all).toEqual({ 0: 1, 1: 1, 2: 2, 3: 1, 4: 1 });
  });

  test("before it starts runs nothing", async () => {
    const worker = vi.fn(double);
    const node = doubling(list(3), worker);
    const graph = only<Sum>((state, context) => {
      controller.abort();
      return node(state, context);
    });
    const controller = new AbortController();
    const { signal } = controller;
    const failure = await rejection(graph.execute(start(), { signal }), ExecutionError);
    expect(failure.code).toBe("ABORTED");
    expect(worker).not.toHaveBeenCalled();
  });

  test("after its last item has its result", async () => {
    const controller = new AbortController();
    const node = doubling(list(1), async () => {
      controller.abort();
      return 7;
    });
    const graph = only(node);
    const final = await graph.execute(start(), { signal: controller.signal });
    expect(final.data.out).toEqual([7]);
  });

  test("by a drain finishes running items and starts no others", async () => {
    const counts = new Counts();
    const waiting: Gate[] = [];
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      counts.add(item);
      const one = gate();
      waiting.push(one);
      await one.opened;
      return item;
    };
    const graph = only(doubling(list(6), worker, { concurrency: 2 }), config());
    const run = rejection(graph.execute(start()), ExecutionError);
    await settled();
    const drained = graph.drain();
    for (const one of waiting) one.open();
    await drained;
    expect(await run).toMatchObject({ code: "ABORTED", cause: "the graph drains" });
    expect(counts.all).toEqual({ 0: 1, 1: 1 });
    const again = graph.resume("r");
    while (counts.of(5) === 0 || waiting.length > 0) {
      for (const one of waiting.splice(0)) one.open();
      await settled();
    }
    expect((await again).data.out).toEqual(list(6));
    expect(counts.all).toEqual({ 0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1 });
  });
});

describe("time", () => {
  test("an item that takes too long fails, and its signal aborts", async () => {
    const clock = useFakeClock();
    try {
      const signals: AbortSignal[] = [];
      const worker = (_state: State<Sum>, item: number, { signal }: ItemContext<Sum>) => {
        signals.push(signal);
        return item === 1 ? new Promise<number>(() => {}) : item;
      };
      const run = failing(list(3), worker, { timeout: 50 });
      await clock.advance(50);
      const error = await run;
      expect(error.message).toBe("item 1 (1) failed: item 1 took longer than its timeout of 50 ms");
      expect(error.errors[0]?.cause).toMatchObject({ name: "TimeoutError" });
      expect(error.results).toEqual([0, 2]);
      expect(signals.map(({ aborted }) => aborted)).toEqual([false, true, false]);
    } finally {
      clock.restore();
    }
  });
});

test("the node's policy retries only what failed", async () => {
  const counts = new Counts();
  const worker = async (_state: State<Sum>, item: number, { attempt }: ItemContext<Sum>) => {
    counts.add(item);
    if (item % 3 === 0 && attempt < 3) throw new Error("busy");
    return item;
  };
  const node = doubling(list(7), worker, { failFast: false });
  const failFast = doubling(list(7), worker, { concurrency: 7 });
  const retry = { maxAttempts: 3, initialInterval: 0 };
  expect((await only(failFast, {}, { retry }).execute(start())).data.out).toEqual(list(7));
  expect(counts.all).toEqual({ 0: 3, 1: 1, 2: 1, 3: 3, 4: 1, 5: 1, 6: 3 });
  expect((await only(node, {}, { retry }).execute(start())).data.out).toEqual(list(7));
});

test("a fatal error of an item is not retried", async () => {
  const counts = new Counts();
  const worker = (_state: State<Sum>, item: number): number => {
    counts.add(item);
    throw new FatalError("no such model");
  };
  const retry = { maxAttempts: 3, initialInterval: 0 };
  await rejection(only(doubling([1], worker), {}, { retry }).execute(start()), ExecutionError);
  expect(counts.all).toEqual({ 1: 1 });
});

test("ledger writes of all items are kept", async () => {
  const node = parallel<Sum, number, number>(list(50), async (_state, item, { ledger }) => {
    await settled();
    ledger.usage({ inputTokens: item, costUsd: 0.1 });
    ledger.output(`part ${item}`, `/tmp/${item}`);
    return item;
  });
  const { ledger } = await only(node).execute(start());
  expect(ledger.usage).toMatchObject({ inputTokens: 1225, costUsd: 5 });
  expect(Object.keys(ledger.outputs)).toHaveLength(50);
});

test("many items may listen to their signals without a warning from Node", async () => {
  const warnings: string[] = [];
  const warned = ({ message }: Error): unknown => warnings.push(message);
  process.on("warning", warned);
  const worker = async (_state: State<Sum>, item: number, context: ItemContext<Sum>) => {
    context.signal.addEventListener("abort", () => {});
    context.draining.addEventListener("abort", () => {});
    await settled();
    return item;
  };
  for (const timeout of [undefined, 60_000]) {
    const node = doubling(list(40), worker, { concurrency: 40, timeout });
    expect((await only(node).execute(start())).data.out).toEqual(list(40));
  }
  await settled();
  process.off("warning", warned);
  expect(warnings).toEqual([]);
});

test("each item has its own signal, which aborts with the node's, even before it is read", async () => {
  const boom = new Error("boom");
  const reasons: unknown[] = [];
  const error = await failing(
    list(3),
    async (_state, item, context) => {
      if (item === 0) throw boom;
      const early = item === 1 ? context.signal : undefined;
      await settled();
      reasons.push((early ?? context.signal).reason);
      return item;
    },
    { concurrency: 3 },
  );
  expect(reasons).toEqual([boom, boom]);
  expect(error.results).toEqual([1, 2]);
});
