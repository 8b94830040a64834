import { describe, expect, test } from "vitest";
import {
  dag,
  ExecutionError,
  type ItemContext,
  MemoryStore,
  map,
  ParallelError,
  parallel,
  route,
  type State,
  StateGraph,
  subgraph,
} from "waymark";
import { useFakeClock } from "waymark/testing";
import { rejection } from "../graphs.js";
import { brief, Counts, eventsOf, only } from "./nodes.js";
import { doubling, list, type Sum, start } from "./numbers.js";

const retry = { maxAttempts: 3, initialInterval: 0 };

/** A worker whose items fail the first `failures` times; and its calls. */
function flaky(failures: (item: number) => number) {
  const counts = new Counts();
  const attempts: string[] = [];
  const worker = async (_state: State<Sum>, item: number, { attempt }: ItemContext<Sum>) => {
    counts.add(item);
    attempts.push(`${item}.${attempt}`);
    if (counts.of(item) <= failures(item)) throw new Error("busy");
    return item;
  };
  return { counts, attempts, worker };
}

describe.each([true, false])("the node's policy, with failFast %s,", (failFast) => {
  test("gives each item its own attempts", async () => {
    const { attempts, worker } = flaky((item) => item % 3);
    const graph = only(doubling(list(5), worker, { concurrency: 1, failFast }), {}, { retry });
    const events = eventsOf(graph, "worker", "node");
    expect((await graph.execute(start())).data.out).toEqual(list(5));
    expect(attempts).toEqual(["0.1", "1.1", "1.2", "2.1", "2.2", "2.3", "3.1", "4.1", "4.2"]);
    const retries = events.filter(({ type }) => String(type).endsWith("retry"));
    expect(brief(retries, "index", "attempt")).toEqual([
      "worker.retry 1 1",
      "worker.retry 2 1",
      "worker.retry 2 2",
      "worker.retry 4 1",
    ]);
  });

  test("gives an item no more, in whatever it is", async () => {
    const nodes = [
      (node: ReturnType<typeof doubling>) => node,
      (node: ReturnType<typeof doubling>) => route<Sum>(() => "it", { it: node }),
      (node: ReturnType<typeof doubling>) =>
        parallel<Sum, string, unknown>(["outer"], (state, _item, context) => node(state, context), {
          failFast,
        }),
    ];
    for (const around of nodes) {
      const { counts, worker } = flaky(() => 9);
      const graph = only(around(doubling([7], worker, { failFast })), {}, { retry });
      await rejection(graph.execute(start()), ExecutionError);
      expect(counts.all).toEqual({ 7: 3 });
    }
  });

  test("is followed by the error handler, once all that is left has failed", async () => {
    const { counts, worker } = flaky(() => 9);
    const graph = only<Sum>(
      doubling([7], worker, { failFast }),
      {},
      {
        retry,
        errorHandler: (error, state, { attempt }) => {
          expect(error).toBeInstanceOf(ParallelError);
          return state.set("out", [attempt]);
        },
      },
    );
    expect((await graph.execute(start())).data.out).toEqual([1]);
    expect(counts.all).toEqual({ 7: 3 });
  });

  test("lets a worker go when an item's next attempt is far away, and counts on", async () => {
    const clock = useFakeClock();
    try {
      const { attempts, worker } = flaky((item) => (item === 1 ? 2 : item === 2 ? 1 : 0));
      const far = { ...retry, initialInterval: 3_600_000, backoff: 1, maxInterval: 3_600_000 };
      const node = doubling(list(4), worker, { concurrency: 1, failFast });
      const store = new MemoryStore();
      const graph = only(node, { checkpoint: { store, interval: 1 } }, { retry: far });
      const held = StateGraph.inside(graph, store, new AbortController().signal, 5000);
      const paused = await held.execute(start());
      expect(paused.pauses.map(({ name }) => name)).toEqual([
        "retry: [1] attempt 2",
        "retry: [2] attempt 2",
      ]);
      expect(attempts).toEqual(["0.1", "1.1", "2.1", "3.1"]);
      await clock.advance(3_600_000);
      expect((await held.resume("r")).pauses.map(({ name }) => name)).toEqual([
        "retry: [1] attempt 3",
      ]);
      await clock.advance(3_600_000);
      expect((await held.resume("r")).data.out).toEqual(list(4));
      expect(attempts.slice(4)).toEqual(["1.2", "2.2", "1.3"]);
    } finally {
      clock.restore();
    }
  });
});

test("without failFast the items that used up their attempts are the errors", async () => {
  const { counts, worker } = flaky((item) => (item === 1 ? 9 : 2));
  const errors: unknown[] = [];
  const node = doubling(list(3), worker, {
    failFast: false,
    merge: (_state, out, failed) => {
      errors.push(...failed.map(({ index }) => index));
      return { out };
    },
  });
  expect((await only(node, {}, { retry }).execute(start())).data.out).toEqual([0, 2]);
  expect([errors, counts.all]).toEqual([[1], { 0: 3, 1: 3, 2: 3 }]);
});

test("the policy of a task holds for each item of its map", async () => {
  const { counts, worker } = flaky((item) => (item === 1 ? 9 : 2));
  const graph = dag<Sum>({ out: { retry, run: map(list(2), worker) } });
  await rejection(graph.execute(start()), ExecutionError);
  expect(counts.of(1)).toBe(3);
});

test("a graph inside a node has policies of its own", async () => {
  const { counts, worker } = flaky(() => 9);
  const inner = only(doubling([7], worker), {}, { retry });
  const outer = subgraph<Sum, Sum, string>(inner, {
    in: ({ data }) => data,
    out: (_state, { data }) => data,
  });
  const again = { maxAttempts: 2, initialInterval: 0 };
  await rejection(only<Sum>(outer, {}, { retry: again }).execute(start()), ExecutionError);
  expect(counts.all).toEqual({ 7: 6 });
});

test("a node that takes too long is tried again as a whole, for the items that are missing", async () => {
  const clock = useFakeClock();
  try {
    const counts = new Counts();
    const worker = async (_state: State<Sum>, item: number) => {
      counts.add(item);
      if (item === 1 && counts.of(1) === 1) await new Promise(() => {});
      return item;
    };
    const graph = only(doubling(list(3), worker), {}, { retry, timeout: 100 });
    const running = graph.execute(start());
    await clock.advance(100);
    expect((await running).data.out).toEqual(list(3));
    expect(counts.all).toEqual({ 0: 1, 1: 2, 2: 1 });
  } finally {
    clock.restore();
  }
});

test("an attempt at an item that was given up writes nothing more", async () => {
  const clock = useFakeClock();
  try {
    const late: unknown[] = [];
    let contextOfFirst: ItemContext<Sum> | undefined;
    const worker = async (_state: State<Sum>, item: number, context: ItemContext<Sum>) => {
      if (context.attempt === 1) {
        contextOfFirst = context;
        return new Promise<number>(() => {});
      }
      for (const write of [
        () => contextOfFirst?.remember("note", 1),
        () => contextOfFirst?.once("note", () => 1),
        () => contextOfFirst?.pause("ok", { reason: "late" }),
      ]) {
        late.push(await write()?.catch((error: unknown) => String(error)));
      }
      return item;
    };
    const running = only(doubling([7], worker, { timeout: 100 }), {}, { retry }).execute(start());
    await clock.advance(100);
    expect((await running).data.out).toEqual([7]);
    const ended =
      "ConfigError: context belongs to attempt 1 at item [0], which has ended: stop when its signal aborts";
    expect(late).toEqual([ended, ended, ended]);
  } finally {
    clock.restore();
  }
});
