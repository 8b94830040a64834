import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type CheckpointStore,
  chain,
  dag,
  MemoryStore,
  type NodeFunction,
  parallel,
  State,
  StateGraph,
  type StepRecord,
  subgraph,
} from "waymark";
import { useClock } from "../../src/clock.js";
import { innerPathOf } from "../../src/nodes/child-store.js";

type Data = { readonly n: number };

const first = Date.parse("2026-01-01T00:00:00.000Z");
let time = first;
let restore = (): void => {};
beforeEach(() => {
  time = first;
  restore = useClock({ now: () => time, after: () => () => {} });
});
afterEach(() => restore());

const at = (ms: number): string => new Date(first + ms).toISOString();

/** A store in which a run that hangs looks like one whose process died. */
const unclaimed = (store: MemoryStore): CheckpointStore => ({
  save: (state, options) => store.save(state, options),
  load: (runId, options) => store.load(runId, options),
  delete: (runId) => store.delete(runId),
  list: () => store.list(),
});

/** Takes so long. */
const take = (ms: number): number => {
  time += ms;
  return ms;
};

const graphOf = (
  node: NodeFunction<Data>,
  store: CheckpointStore = new MemoryStore(),
  interval = 1,
) =>
  new StateGraph<Data>({ checkpoint: { store, interval, preserve: true } })
    .addNode("work", node)
    .setEntryPoint("work")
    .setExitPoint("work");

const itemsOf = (step: StepRecord | undefined) =>
  step?.items?.map(({ name, startedAt, durationMs, outcome }) => [
    name,
    startedAt,
    durationMs,
    outcome,
  ]);

describe("the record of a step has", () => {
  test("its calls of once, including failed ones", async () => {
    let fails = true;
    const graph = graphOf(async (state, context) => {
      await context.once("fetch", () => take(5));
      await context
        .once("charge", () => {
          take(2);
          if (fails) throw new Error("no");
        })
        .catch(() => {});
      fails = false;
      await context.once("charge", () => take(3));
      await context.sleep("nap", 0);
      return state;
    });
    const { steps } = await graph.execute(State.create({ n: 0 }));
    expect(itemsOf(steps[0])).toEqual([
      ["fetch", at(0), 5, "completed"],
      ["charge", at(5), 2, "failed"],
      ["charge", at(7), 3, "completed"],
    ]);
    expect(State.fromJSON(JSON.stringify(State.create({ n: 0 }))).steps).toEqual([]);
  });

  test("the items of a list, by value or index", async () => {
    const node = parallel<Data, string | { id: number }, number>(
      () => ["a.txt", { id: 7 }],
      (_state, item) => take(typeof item === "string" ? 4 : 6),
      { concurrency: 1 },
    );
    const { steps } = await graphOf(node).execute(State.create({ n: 0 }));
    expect(itemsOf(steps[0])).toEqual([
      ["a.txt", at(0), 4, "completed"],
      ["#1", at(4), 6, "completed"],
    ]);
  });

  test("the links of a chain, including the failed one", async () => {
    const store = new MemoryStore();
    let fails = true;
    const node = chain<Data, number>([1, 2], (state, item) => {
      take(item);
      if (fails && item === 2) throw new Error("no");
      return { n: state.data.n + item };
    });
    await expect(
      graphOf(node, store).execute(State.create({ n: 0 }, { runId: "r" })),
    ).rejects.toThrow();
    fails = false;
    take(1000);
    const { steps } = await graphOf(node, store).resume("r");
    expect(itemsOf(steps[0])).toEqual([
      ["1", at(0), 1, "completed"],
      ["2", at(1), 2, "failed"],
      ["2", at(1003), 2, "completed"],
    ]);
    expect(steps[0]).toMatchObject({ startedAt: at(0), durationMs: 5, attempts: 2 });
  });

  test("the tasks of a dag", async () => {
    const graph = dag<{ a: number; b: number }>(
      { a: { run: () => take(3) }, b: { dependsOn: ["a"], run: () => take(4) } },
      { checkpoint: { store: new MemoryStore(), interval: 1, preserve: true } },
    );
    const { steps } = await graph.execute(State.create({ a: 0, b: 0 }));
    expect(steps.flatMap((step) => itemsOf(step))).toEqual([
      ["a", at(0), 3, "completed"],
      ["b", at(3), 4, "completed"],
    ]);
  });

  test("the nodes of inner graphs, including the failed one", async () => {
    let fails = true;
    const deepest = new StateGraph<Data>({ name: "deepest" })
      .addNode("count", (state) => ({ n: state.data.n + take(2) }))
      .setEntryPoint("count")
      .setExitPoint("count");
    const pass = {
      in: ({ data }: State<Data>) => data,
      out: (_: unknown, { data }: State<Data>) => data,
    };
    const inner = new StateGraph<Data>({ name: "inner" })
      .addNode("deeper", subgraph(deepest, pass))
      .addNode("check", (state) => {
        take(3);
        if (fails) throw new Error("no");
        return state;
      })
      .addEdge("deeper", "check")
      .setEntryPoint("deeper")
      .setExitPoint("check");
    const store = new MemoryStore();
    const graph = graphOf(subgraph(inner, pass), store);
    await expect(graph.execute(State.create({ n: 0 }, { runId: "r" }))).rejects.toThrow("no");
    expect(innerPathOf(await store.load("r"))).toEqual(["check"]);
    fails = false;
    const { steps } = await graph.resume("r");
    expect(itemsOf(steps[0])).toEqual([
      ["deeper/count", at(0), 2, "completed"],
      ["deeper", at(0), 2, "completed"],
      ["check", at(2), 3, "failed"],
      ["check", at(5), 3, "completed"],
    ]);
  });

  test("the newest 20 failed attempts, and when the last started", async () => {
    restore();
    // Waits are over as soon as they begin.
    restore = useClock({
      now: () => time,
      after: (ms, callback) => {
        time += ms;
        queueMicrotask(callback);
        return () => {};
      },
    });
    const store = new MemoryStore();
    const failing = (times: number) =>
      new StateGraph<Data>({ checkpoint: { store, interval: 1, preserve: true } })
        .addNode(
          "work",
          (state, { attempt }) => {
            take(5);
            if (attempt <= times) throw new Error("no");
            return state;
          },
          { retry: { maxAttempts: 3, initialInterval: 0 } },
        )
        .setEntryPoint("work")
        .setExitPoint("work");
    await expect(failing(3).execute(State.create({ n: 0 }, { runId: "r" }))).rejects.toThrow("no");
    const failed = [0, 5, 10].map((ms) => ({ startedAt: at(ms), durationMs: 5 }));
    expect((await store.load("r")).toJSON().begun?.failedAttempts).toEqual(failed);
    take(1000);
    const { steps } = await failing(1).resume("r");
    const again = { startedAt: at(1015), durationMs: 5 };
    expect(steps[0]).toMatchObject({ attempts: 5, lastAttemptAt: at(1020) });
    expect(steps[0]?.failedAttempts).toEqual([...failed, again]);
    expect((await store.load("r")).steps).toEqual(steps);
    const often = new StateGraph<Data>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode(
        "work",
        (state, { attempt }) => {
          if (attempt < 30) throw new Error("no");
          return state;
        },
        { retry: { maxAttempts: 30, initialInterval: 1000 } },
      )
      .setEntryPoint("work")
      .setExitPoint("work");
    const [step] = (await often.execute(State.create({ n: 0 }))).steps;
    expect(step?.attempts).toBe(30);
    expect(step?.failedAttempts).toHaveLength(20);
    const last = step?.failedAttempts?.at(-1)?.startedAt ?? "";
    expect(Date.parse(step?.lastAttemptAt ?? "")).toBeGreaterThan(Date.parse(last));
  });

  test("the newest 100 items", async () => {
    const node = parallel<Data, number, number>(
      () => Array.from({ length: 250 }, (_, index) => index),
      (_state, item) => item,
      { concurrency: 1 },
    );
    const { steps } = await graphOf(node).execute(State.create({ n: 0 }));
    expect(steps[0]?.items?.map(({ name }) => Number(name))).toEqual(
      Array.from({ length: 100 }, (_, index) => index + 150),
    );
  });
});

test("items that ended before a crash are in the record of the step completed by a resume", async () => {
  const store = unclaimed(new MemoryStore());
  const dies = new Promise<never>(() => {});
  const node =
    (isDying: boolean): NodeFunction<Data> =>
    async (state, context) => {
      await context.once("first", () => take(5));
      if (isDying) await dies;
      await context.once("second", () => take(7));
      return state;
    };
  const saved = new Promise<void>((resolve) => {
    const graph = graphOf(node(true), store);
    graph.on("checkpoint.save", ({ data }) => data.reason === "once" && resolve());
    void graph.execute(State.create({ n: 0 }, { runId: "r" }));
  });
  await saved;
  take(60_000);
  const { steps, crashes, totals } = await graphOf(node(false), store).resume("r");
  expect(itemsOf(steps[0])).toEqual([
    ["first", at(0), 5, "completed"],
    ["second", at(60_005), 7, "completed"],
  ]);
  expect(steps[0]).toMatchObject({
    startedAt: at(0),
    completedAt: at(60_012),
    durationMs: 12,
    attempts: 1,
    restarts: 1,
  });
  expect([crashes, totals.work?.durationMs]).toEqual([1, 12]);
});

test("nothing is recorded without checkpointing", async () => {
  const node = parallel<Data, number, number>(
    () => [1, 2],
    (_state, item) => item,
  );
  const { steps } = await graphOf(node, new MemoryStore(), 0).execute(State.create({ n: 0 }));
  expect(steps).toEqual([]);
});
