import { describe, expect, test } from "vitest";
import {
  ConfigError,
  type DagTasks,
  dag,
  ExecutionError,
  type ItemContext,
  MemoryStore,
  State,
} from "waymark";
import type { DagOptions } from "../../src/nodes/dag.js";
import { listen, rejection } from "../graphs.js";
import { Counts } from "./nodes.js";

type Data = Record<string, string>;

/** A dag by what each task depends on; `!` after a name makes the task fail. */
type Shape = Readonly<Record<string, readonly string[]>>;

/** A dag of tasks whose results say what they saw. */
function shaped(shape: Shape, counts: Counts, options: DagOptions<Data>, failing: string[] = []) {
  const tasks: DagTasks<Data> = Object.fromEntries(
    Object.entries(shape).map(([name, dependsOn]) => [
      name,
      {
        dependsOn,
        run: ({ data }: State<Data>) => {
          counts.add(name);
          if (failing.includes(name)) throw new Error("stop");
          return `${name}(${dependsOn.map((need) => data[need]).join()})`;
        },
      },
    ]),
  );
  return dag<Data>(tasks, options);
}

interface Change {
  readonly what: string;
  readonly before: Shape;
  /** The task that stops the first run. */
  readonly fails: string;
  readonly after: Shape;
  /** What the second run does. */
  readonly runs: readonly string[];
  /** Results that the final State has, besides those of the first run. */
  readonly results: Data;
}

const changes: readonly Change[] = [
  {
    what: "a task added to a layer that is done",
    before: { a: [], b: ["a"], c: ["b"] },
    fails: "c",
    after: { a: [], new: [], b: ["a"], c: ["b"] },
    runs: ["new", "c"],
    results: { new: "new()", c: "c(b(a()))" },
  },
  {
    what: "a task added to the layer that stopped",
    before: { a: [], b: ["a"], x: ["a"] },
    fails: "x",
    after: { a: [], b: ["a"], x: ["a"], y: ["a"] },
    runs: ["x", "y"],
    results: { x: "x(a())", y: "y(a())" },
  },
  {
    what: "a task removed that was not done",
    before: { a: [], b: ["a"], c: ["b"] },
    fails: "c",
    after: { a: [], b: ["a"] },
    runs: [],
    results: { b: "b(a())" },
  },
  {
    what: "a task removed that was done",
    before: { a: [], b: [], c: ["a", "b"] },
    fails: "c",
    after: { a: [], c: ["a"] },
    runs: ["c"],
    results: { c: "c(a())" },
  },
  {
    what: "a new dependency of a task that is done",
    before: { a: [], b: ["a"], c: ["b"] },
    fails: "c",
    after: { a: [], new: [], b: ["a", "new"], c: ["b"] },
    runs: ["new", "c"],
    results: { b: "b(a())", new: "new()", c: "c(b(a()))" },
  },
  {
    what: "a new dependency of a task that is not done",
    before: { a: [], c: ["a"] },
    fails: "c",
    after: { a: [], new: ["a"], c: ["new"] },
    runs: ["new", "c"],
    results: { new: "new(a())", c: "c(new(a()))" },
  },
  {
    what: "fewer layers",
    before: { a: [], b: ["a"], c: ["b"], d: ["c"] },
    fails: "d",
    after: { a: [], d: [] },
    runs: ["d"],
    results: { d: "d()" },
  },
  {
    what: "more layers",
    before: { a: [], d: ["a"] },
    fails: "d",
    after: { a: [], b: ["a"], c: ["b"], d: ["c"] },
    runs: ["b", "c", "d"],
    results: { d: "d(c(b(a())))" },
  },
  {
    what: "a task moved to a later layer after its result was saved in the middle of its own",
    before: { a: [], b: ["a"], x: ["a"] },
    fails: "x",
    after: { a: [], x: ["a"], y: ["x"], b: ["y"] },
    runs: ["x", "y"],
    results: { b: "b(a())", y: "y(x(a()))" },
  },
  {
    what: "every task but those that are done removed, in the middle of a layer",
    before: { a: [], b: ["a"], x: ["a"] },
    fails: "x",
    after: { a: [], b: ["a"] },
    runs: [],
    results: { b: "b(a())" },
  },
  {
    what: "all of its tasks replaced",
    before: { a: [], b: ["a"] },
    fails: "b",
    after: { x: [], y: ["x"] },
    runs: ["x", "y"],
    results: { y: "y(x())" },
  },
];

describe.each(["layers", "eager"] as const)("a dag with schedule %j resumes after", (schedule) => {
  test.each(changes)("$what", async ({ before, fails, after, runs, results }) => {
    const store = new MemoryStore();
    const options = {
      schedule,
      concurrency: 8,
      checkpoint: { store, interval: 1, preserve: true },
    };
    const first = new Counts();
    const graph = shaped(before, first, options, [fails]);
    await rejection(graph.execute(State.create<Data>({}, { runId: "r" })), ExecutionError);
    const counts = new Counts();
    const final = await shaped(after, counts, options).resume("r");
    expect(counts.all).toEqual(Object.fromEntries(runs.map((task) => [task, 1])));
    expect(final.data).toMatchObject(results);
    expect(final.status).toBe("completed");
    expect((await store.load("r")).status).toBe("completed");
  });

  test("a change of its schedule", async () => {
    const store = new MemoryStore();
    const checkpoint = { store, interval: 1 };
    const shape = { a: [], b: ["a"], x: ["a"], c: ["b", "x"] };
    const graph = shaped(shape, new Counts(), { schedule, checkpoint }, ["x"]);
    await rejection(graph.execute(State.create<Data>({}, { runId: "r" })), ExecutionError);
    const counts = new Counts();
    const other = schedule === "eager" ? "layers" : "eager";
    const final = await shaped(shape, counts, { schedule: other, checkpoint }).resume("r");
    expect(final.data.c).toBe("c(b(a()),x(a()))");
    expect(counts.all).toEqual({ x: 1, c: 1 });
  });
});

test("a changed dag emits which tasks were added, removed and rewired", async () => {
  const store = new MemoryStore();
  const options = { checkpoint: { store, interval: 1 } };
  const graph = shaped({ a: [], b: ["a"], c: ["a"] }, new Counts(), options, ["c"]);
  await rejection(graph.execute(State.create<Data>({}, { runId: "r" })), ExecutionError);
  const changed = shaped({ a: [], c: ["new"], new: ["a"] }, new Counts(), options);
  const events = listen(changed as never);
  await changed.resume("r");
  expect(events.find(({ type }) => type === "graph.mismatch")?.data).toMatchObject({
    added: ["new"],
    removed: ["b"],
    rewired: ["c"],
  });
});

describe("a dag paused in a removed task", () => {
  const tasks = (...names: string[]): DagTasks<Data> =>
    Object.fromEntries(
      names.map((name) => [
        name,
        async (_state: State<Data>, context: ItemContext<Data>) =>
          name.startsWith("ask")
            ? String(await context.pause(name, { reason: "approval", ask: `${name}?` }))
            : name,
      ]),
    );

  test.each(["layers", "eager"] as const)("does not wait for it (%s)", async (schedule) => {
    const options = { checkpoint: { store: new MemoryStore(), interval: 1 }, schedule };
    const paused = await dag(tasks("a", "ask"), options).execute(
      State.create<Data>({}, { runId: "r" }),
    );
    expect(paused.pauses).toMatchObject([{ name: "ask" }]);
    const final = await dag(tasks("a", "b"), options).resume("r");
    expect(final.data).toEqual({ a: "a", b: "b" });
  });

  test("completes if nothing is left to do, and accepts no input", async () => {
    const options = { checkpoint: { store: new MemoryStore(), interval: 1 } };
    await dag(tasks("a", "ask"), options).execute(State.create<Data>({}, { runId: "r" }));
    const changed = dag(tasks("a"), options);
    const error = await rejection(changed.resume("r", { input: { a: "?" } }), ConfigError);
    expect(error.message).toContain("is not paused");
    expect((await changed.resume("r")).data).toEqual({ a: "a" });
  });

  test("still waits for the remaining tasks", async () => {
    const options = { checkpoint: { store: new MemoryStore(), interval: 1 } };
    await dag(tasks("ask 1", "ask 2"), options).execute(State.create<Data>({}, { runId: "r" }));
    const changed = dag(tasks("ask 2"), options);
    const error = await rejection(changed.resume("r"), ConfigError);
    expect(error.message).toContain('"ask 2?"');
    expect((await changed.resume("r", { input: "yes" })).data).toEqual({ "ask 2": "yes" });
  });
});

test("a completed run stays completed, whatever is added to its dag", async () => {
  const store = new MemoryStore();
  const options = { checkpoint: { store, interval: 1, preserve: true } };
  await shaped({ a: [] }, new Counts(), options).execute(State.create<Data>({}, { runId: "r" }));
  const counts = new Counts();
  const final = await shaped({ a: [], b: ["a"] }, counts, options).resume("r");
  expect(final.status).toBe("completed");
  expect(counts.all).toEqual({});
});

test("a fork of a changed dag runs only what is new", async () => {
  const store = new MemoryStore();
  const options = { checkpoint: { store, interval: 1, preserve: true } };
  const graph = shaped({ a: [], b: ["a"] }, new Counts(), options);
  await graph.execute(State.create<Data>({}, { runId: "r" }));
  const counts = new Counts();
  const changed = shaped({ a: [], b: ["a"], c: ["b"] }, counts, options);
  const { runId } = await changed.fork("r", 2);
  expect((await changed.resume(runId)).data.c).toBe("c(b(a()))");
  expect(counts.all).toEqual({ c: 1 });
});
