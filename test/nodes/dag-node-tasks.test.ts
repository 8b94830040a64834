import { describe, expect, test } from "vitest";
import {
  append,
  chain,
  type DagTasks,
  dag,
  ExecutionError,
  MemoryStore,
  map,
  type NodeFunction,
  ParallelError,
  parallel,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { rejection } from "../graphs.js";
import { configError } from "../matchers.js";

interface Sums {
  base: number;
  a: number;
  list: number[];
}

const start = () => State.create<Sums>({ base: 4, a: 0, list: [] }, { runId: "r" });

const inner = (work: NodeFunction<{ n: number }>) =>
  new StateGraph<{ n: number }>()
    .addNode("add", ({ data }) => ({ n: data.n + 1 }))
    .addNode("double", work)
    .addEdge("add", "double")
    .setEntryPoint("add")
    .setExitPoint("double");

const double: NodeFunction<{ n: number }> = ({ data }) => ({ n: data.n * 2 });

describe("a node as a task", () => {
  test("has as its result what the node returned for its key", async () => {
    const graph = dag<Sums>()({
      a: {
        node: subgraph(inner(double), {
          in: ({ data }) => ({ n: data.base }),
          out: (_state, { data }) => ({ a: data.n }),
        }),
      },
      list: {
        dependsOn: ["a"],
        node: parallel(
          ({ data }) => [data.a, data.base],
          (_state, n) => n + 1,
          { merge: (_state, list) => ({ list }) },
        ),
      },
    });
    expect((await graph.execute(start())).data).toEqual({ base: 4, a: 10, list: [11, 5] });
  });

  test("may return a State", async () => {
    const graph = dag<Sums>({
      a: { node: (state) => state.set("a", state.data.base + 5) },
      list: {
        dependsOn: ["a"],
        node: chain([1, 2], (state, n) => state.set("list", [...state.data.list, n])),
      },
    });
    expect((await graph.execute(start())).data).toEqual({ base: 4, a: 9, list: [1, 2] });
  });

  test("leaves the key as it is if it changes nothing", async () => {
    const graph = dag<Sums>({ a: { node: (state) => state }, list: { node: () => ({}) } });
    expect((await graph.execute(start())).data).toEqual(start().data);
  });

  test("resumes inside its subgraph", async () => {
    const checkpoint = { store: new MemoryStore(), interval: 1 };
    let added = 0;
    let fails = true;
    const graph = dag<Sums>(
      {
        a: {
          node: subgraph(
            new StateGraph<{ n: number }>()
              .addNode("add", ({ data }) => {
                added++;
                return { n: data.n + 1 };
              })
              .addNode("double", (state, context) => {
                if (fails) throw new Error("stop");
                return double(state, context);
              })
              .addEdge("add", "double")
              .setEntryPoint("add")
              .setExitPoint("double"),
            {
              in: ({ data }) => ({ n: data.base }),
              out: (_state, { data }) => ({ a: data.n }),
            },
          ),
        },
      },
      { checkpoint },
    );
    await expect(graph.execute(start())).rejects.toThrow("stop");
    fails = false;
    expect((await graph.resume("r")).data.a).toBe(10);
    expect(added).toBe(1);
  });

  test("passes the reducer of its key once", async () => {
    const tasks: DagTasks<Sums> = { list: { node: () => ({ list: [2] }) } };
    const graph = dag<Sums>(tasks, { reducers: { list: append } });
    const first = State.create<Sums>({ base: 0, a: 0, list: [1] });
    expect((await graph.execute(first)).data.list).toEqual([1, 2]);
  });

  test.each<[what: string, node: NodeFunction<Sums>, message: string]>([
    [
      "changes another key",
      () => ({ a: 1, base: 5 }),
      'tasks.a.node must change no key but "a"; it changed "base"',
    ],
    [
      "sets another key",
      (state) => state.set("base", 5),
      'tasks.a.node must change no key but "a"; it changed "base"',
    ],
    [
      "returns a number",
      () => 5 as never,
      "tasks.a.node must return a State or a plain object to merge; got 5",
    ],
  ])("fails if it %s", async (_what, node, message) => {
    const error = await dag<Sums>({ a: { node } })
      .execute(start())
      .catch((thrown: { cause: unknown }) => thrown.cause);
    expect(error).toBeInstanceOf(ParallelError);
    expect(error).toMatchObject({ errors: [{ cause: configError("tasks.a.node", message) }] });
  });

  test("fails if it returns a State and its key has a reducer", async () => {
    const tasks: DagTasks<Sums> = { list: { node: (state) => state.set("list", [2]) } };
    const graph = dag<Sums>(tasks, { reducers: { list: append } });
    const message =
      'tasks.list.node must return an object such as { "list": … }, as its key has a reducer; got a State';
    expect((await rejection(graph.execute(start()), ExecutionError)).message).toContain(message);
  });

  test.each([
    [{ a: parallel([], () => 1) }, "tasks.a.run is a node: declare it as { node }"],
    [{ a: { run: parallel([], () => 1) } }, "tasks.a.run is a node: declare it as { node }"],
    [{ a: { run: () => 1, node: () => ({}) } }, "tasks.a.run is not for a node"],
  ])("must be declared as such: %j", (tasks, message) => {
    expect(() => dag<Sums>(tasks as never)).toThrow(configError("tasks.a.run", message));
  });
});

test("progress events name the task or item they come from", async () => {
  const part = { title: "Part", summary: "done" };
  const graph = dag<Sums>({
    a: (_state, context) => {
      context.progress(part);
      return 1;
    },
    list: {
      dependsOn: ["a"],
      run: map(["x"], (_state, _item, context) => {
        context.progress(part);
        return 1;
      }),
    },
  });
  const items: unknown[] = [];
  graph.on("progress", ({ data }) => items.push(data.item));
  await graph.execute(start());
  expect(items).toEqual(["a", "list"]);
});
