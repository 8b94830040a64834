import { describe, expect, test, vi } from "vitest";
import { ExecutionError, MemoryStore, parallel, State } from "waymark";
import type { ParallelWorker } from "../../src/nodes/parallel.js";
import { gate, rejection } from "../graphs.js";
import { configError } from "../matchers.js";
import { brief, Counts, eventsOf, only } from "./nodes.js";
import { double, doubling, failing, list, type Sum, settled, start } from "./numbers.js";

describe("a parallel node", () => {
  test.each([0, 1, 2, 100, 1000])("returns the results of %i items in order", async (length) => {
    const final = await only(doubling(list(length))).execute(start());
    expect(final.data.out).toEqual(list(length).map((item) => item * 2));
    expect(final).toMatchObject({ step: 1, checkpointNode: "work" });
  });

  test("returns them in the order of the items, whichever completes first", async () => {
    const gates = list(4).map(() => gate());
    const run = only(
      doubling(list(4), async (_state, item) => {
        await gates[item]?.opened;
        return item;
      }),
    ).execute(start());
    for (const one of [2, 0, 3, 1]) {
      gates[one]?.open();
      await settled();
    }
    expect((await run).data.out).toEqual([0, 1, 2, 3]);
  });

  test("runs no more items at once than its concurrency", async () => {
    let running = 0;
    let most = 0;
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      most = Math.max(most, ++running);
      await settled();
      running--;
      return item;
    };
    await only(doubling(list(20), worker, { concurrency: 3 })).execute(start());
    expect(most).toBe(3);
    most = 0;
    await only(doubling(list(2), worker, { concurrency: 3 })).execute(start());
    expect(most).toBe(2);
    most = 0;
    await only(doubling(list(50), worker, { concurrency: Number.POSITIVE_INFINITY })).execute(
      start(),
    );
    expect(most).toBe(50);
  });

  test.each([
    [undefined, 8],
    [{ hardwareConcurrency: 3 }, 6],
    [{ hardwareConcurrency: 64 }, 16],
  ])(
    "runs by default twice as many as processors, at most 16: %o",
    async (navigator, concurrency) => {
      vi.stubGlobal("navigator", navigator);
      const graph = only(doubling(list(100)));
      const events = eventsOf(graph, "parallel");
      await graph.execute(start());
      vi.unstubAllGlobals();
      expect(events[0]?.data).toMatchObject({ concurrency });
    },
  );

  test("gets its items from the State, and leaves the State unchanged by default", async () => {
    const seen: number[] = [];
    const node = parallel<Sum, number, void>(
      (state) => state.data.out,
      (state, item, { index }) => {
        expect(state.data.out[index]).toBe(item);
        seen.push(item);
      },
    );
    const final = await only(node).execute(State.create<Sum>({ out: [5, 6] }));
    expect([final.data.out, seen]).toEqual([
      [5, 6],
      [5, 6],
    ]);
  });

  test("reports its progress when an item succeeds, and only then", async () => {
    const told: number[][] = [];
    const worker = async (_state: State<Sum>, item: number): Promise<number> => {
      if (item === 1) throw new Error("boom");
      return item * 10;
    };
    const node = doubling(list(4), worker, {
      concurrency: 2,
      failFast: false,
      onProgress: (...args) => told.push(args),
    });
    await only(node).execute(start());
    expect(told).toEqual([
      [1, 4, 0],
      [2, 4, 20],
      [3, 4, 30],
    ]);
  });

  test("emits its events", async () => {
    const graph = only(
      doubling(
        list(3),
        (_state, item) => {
          if (item === 1) throw new Error("boom");
          return item;
        },
        { concurrency: 1, failFast: false },
      ),
    );
    const events = eventsOf(graph, "parallel", "worker");
    await graph.execute(start());
    expect(brief(events, "index", "total", "completed", "failed", "error")).toEqual([
      "parallel.start  3 0",
      "worker.start 0 3",
      "worker.complete 0 3",
      "worker.start 1 3",
      "worker.complete 1 3   boom",
      "worker.start 2 3",
      "worker.complete 2 3",
      "parallel.complete  3 2 1",
    ]);
  });

  test("has results that may be undefined and are frozen like the State's data", async () => {
    const node = parallel<{ out: unknown }, number, { n: number } | undefined>(
      list(3),
      (_state, n) => (n === 1 ? undefined : { n }),
      {
        merge: (_state, results) => {
          expect(Object.isFrozen(results[0])).toBe(true);
          return { out: results };
        },
      },
    );
    const final = await only(node).execute(State.create<{ out: unknown }>({ out: 0 }));
    expect(final.data.out).toEqual([{ n: 0 }, undefined, { n: 2 }]);
  });

  test("refuses invalid options", () => {
    expect(() => parallel([], 1 as never)).toThrow(configError("worker", "must be a function"));
    const refused = (options: object, name: string): void =>
      expect(() => parallel([], double, options)).toThrow(configError(`parallel.${name}`));
    refused({ concurrency: 0 }, "concurrency");
    refused({ concurrency: 1.5 }, "concurrency");
    refused({ failFast: 1 }, "failFast");
    refused({ timeout: 0 }, "timeout");
    refused({ merge: 1 }, "merge");
    refused({ onProgress: 1 }, "onProgress");
    refused({ workers: 3 }, "workers");
  });

  test("without checkpointing allows results that no checkpoint can hold", async () => {
    const node = parallel<Sum, number, () => number>(list(2), (_state, n) => () => n, {
      merge: (_state, results) => ({ out: results.map((result) => result()) }),
    });
    expect((await only(node).execute(start())).data.out).toEqual([0, 1]);
    const config = { checkpoint: { store: new MemoryStore(), interval: 1 } };
    const failure = await rejection(only(node, config).execute(start()), ExecutionError);
    expect(failure.cause).toMatchObject({ code: "SERIALIZATION", path: "results 0.0.0" });
  });
});

describe("fail-fast", () => {
  test("stops the rest, and keeps what succeeded", async () => {
    const counts = new Counts();
    const boom = new TypeError("boom");
    const error = await failing(
      list(100),
      async (_state, item) => {
        counts.add(item);
        if (item === 3) throw boom;
        return item;
      },
      { concurrency: 1 },
    );
    expect(error).toMatchObject({ code: "PARALLEL_FAILED", message: "item 3 (3) failed: boom" });
    expect(error.errors).toEqual([{ index: 3, item: 3, cause: boom }]);
    expect(error.cause).toBe(boom);
    expect(error.results).toEqual([0, 1, 2]);
    expect(Object.keys(counts.all)).toHaveLength(4);
  });

  test("aborts the running items, without counting that as their errors", async () => {
    const boom = new Error("boom");
    const reasons: unknown[] = [];
    const error = await failing(
      list(4),
      async (_state, item, { signal }) => {
        if (item === 2) {
          await settled();
          throw boom;
        }
        return new Promise<number>((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            reject(item === 0 ? signal.reason : new DOMException("stopped", "AbortError"));
          });
        });
      },
      { concurrency: 3 },
    );
    expect(reasons).toEqual([boom, boom]);
    expect(error.errors).toEqual([{ index: 2, item: 2, cause: boom }]);
  });

  test("waits for items that ignore their signal, and counts their outcome", async () => {
    const late = gate();
    const run = failing(
      list(3),
      async (_state, item) => {
        if (item === 0) throw new Error("first");
        await late.opened;
        if (item === 2) throw new Error("late");
        return item;
      },
      { concurrency: 3 },
    );
    await settled();
    late.open();
    const error = await run;
    expect(error.results).toEqual([1]);
    expect(error.errors.map(({ index }) => index)).toEqual([0, 2]);
    expect(error.message).toBe(
      "2 of 3 items failed: item 0 (0) failed: first; item 2 (2) failed: late",
    );
  });
});

describe("collect-all", () => {
  const odd: ParallelWorker<Sum, number, number> = async (_state, item) => {
    if (item % 2 === 0) throw new Error(`no ${item}`);
    return item;
  };

  test("returns what succeeded and every failed item", async () => {
    const merge = vi.fn((_state: State<Sum>, out: readonly number[]) => ({ out }));
    const final = await only(doubling(list(5), odd, { failFast: false, merge })).execute(start());
    expect(final.data.out).toEqual([1, 3]);
    const [, results, errors] = merge.mock.calls[0] as unknown[];
    expect(results).toEqual([1, 3]);
    expect(errors).toEqual([
      { index: 0, item: 0, cause: new Error("no 0") },
      { index: 2, item: 2, cause: new Error("no 2") },
      { index: 4, item: 4, cause: new Error("no 4") },
    ]);
  });

  test("fails only if all items failed", async () => {
    const error = await failing([0, 2, 4, 6, 8, 10], odd, { failFast: false });
    expect(error.errors).toHaveLength(6);
    expect(error.results).toEqual([]);
    expect(error.message).toBe(
      "6 of 6 items failed: item 0 (0) failed: no 0; item 1 (2) failed: no 2; " +
        "item 2 (4) failed: no 4; item 3 (6) failed: no 6; item 4 (8) failed: no 8; …",
    );
    expect(await failing([0], odd, { failFast: false })).toMatchObject({
      message: "item 0 (0) failed: no 0",
    });
  });

  test("succeeds without items", async () => {
    expect((await only(doubling([], odd, { failFast: false })).execute(start())).data.out).toEqual(
      [],
    );
  });

  test("lets no failure abort other items", async () => {
    const signals: boolean[] = [];
    const node = doubling(
      list(4),
      async (state, item, context) => {
        await settled();
        signals.push(context.signal.aborted);
        return odd(state, item, context);
      },
      { failFast: false, concurrency: 4 },
    );
    await only(node).execute(start());
    expect(signals).toEqual([false, false, false, false]);
  });
});
