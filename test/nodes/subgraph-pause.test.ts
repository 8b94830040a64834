import { describe, expect, test } from "vitest";
import {
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  parallel,
  pause,
  SchemaError,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { rejection } from "../graphs.js";
import { configError, schemaError } from "../matchers.js";
import { schema } from "../run/schemas.js";
import { Counts, only, remembered } from "./nodes.js";

interface Said {
  readonly said: readonly unknown[];
}

const start = (): State<Said> => State.create<Said>({ said: [] }, { runId: "r" });
const saving = (store = new MemoryStore()) => ({ checkpoint: { store, interval: 1 } });

function inside(inner: StateGraph<Said, string>): NodeFunction<Said> {
  return subgraph<Said, Said, string>(inner, {
    in: () => ({ said: [] }),
    out: (state, { data }) => ({ said: [...state.data.said, ...data.said] }),
  });
}

/** Asks for something inside its node, under a name. */
const ask =
  (...names: readonly string[]): NodeFunction<Said> =>
  async (state, context) => {
    // All at once: what a person has to look at, they can look at together.
    const answers = await Promise.all(
      names.map((name) => context.pause(name, { reason: `look at ${name}`, ask: name })),
    );
    return { said: [...state.data.said, ...answers] };
  };

describe("a pause inside", () => {
  test("pauses the outer run, whose input is passed inside", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    const graph = () => {
      const before: NodeFunction<Said> = (state) => {
        counts.add("before");
        return state;
      };
      const inner = new StateGraph<Said, string>()
        .addNode("before", before)
        .addNode("ask", ask("ok"))
        .addEdge("before", "ask")
        .setEntryPoint("before")
        .setExitPoint("ask");
      return only(inside(inner), saving(store));
    };
    const paused = await graph().execute(start());
    expect(paused).toMatchObject({ status: "paused", checkpointNode: "", step: 0 });
    expect(paused.pauses).toEqual([{ name: "ok", reason: "look at ok", ask: "ok" }]);
    expect((await store.load("r")).status).toBe("paused");
    const final = await graph().resume("r", { input: "yes" });
    expect(final.data.said).toEqual(["yes"]);
    expect(counts.all).toEqual({ before: 1 });
  });

  test("refuses a resume without input", async () => {
    const graph = only(inside(only(ask("ok"))), saving());
    await graph.execute(start());
    await expect(graph.resume("r")).rejects.toEqual(configError("input", /is missing/));
  });

  test("returned by a node is named after that node, and its input is merged into the data", async () => {
    const inner = only<Said>((state) => pause(state, { reason: "look", ask: "?", into: "said" }));
    const graph = only(inside(inner), saving());
    expect((await graph.execute(start())).pauses).toEqual([
      { name: "work", reason: "look", ask: "?" },
    ]);
    expect((await graph.resume("r", { input: ["so"] })).data.said).toEqual(["so"]);
  });

  test("that occurs again is asked again, without the previous answer", async () => {
    const inner = new StateGraph<Said, string>()
      .addNode("ask", ask("ok"))
      .addNode("done", (state) => state)
      .addEdge("ask", "ask", (state) => state.data.said.length < 3)
      .addEdge("ask", "done")
      .setEntryPoint("ask")
      .setExitPoint("done");
    const graph = only(inside(inner), saving());
    await graph.execute(start());
    expect((await graph.resume("r", { input: 1 })).status).toBe("paused");
    expect((await graph.resume("r", { input: 2 })).status).toBe("paused");
    expect((await graph.resume("r", { input: 3 })).data.said).toEqual([1, 2, 3]);
  });

  test("several at once accept an object, or answers one by one", async () => {
    const graph = only(inside(only(ask("a", "b"))), saving());
    expect((await graph.execute(start())).pauses.map(({ name }) => name)).toEqual(["a", "b"]);
    const still = await graph.resume("r", { input: { b: 2 } });
    expect(still.pauses.map(({ name }) => name)).toEqual(["a"]);
    expect((await graph.resume("r", { input: 1 })).data.said).toEqual([1, 2]);
  });

  test("at a breakpoint of the inner graph continues without input", async () => {
    const counts = new Counts();
    const node: NodeFunction<Said> = (state, { node }) => {
      counts.add(node);
      return { said: [...state.data.said, node] };
    };
    const inner = new StateGraph<Said, string>({ breakpoints: { before: ["b"], after: ["b"] } })
      .addNode("a", node)
      .addNode("b", node)
      .addNode("c", node)
      .addEdge("a", "b")
      .addEdge("b", "c")
      .setEntryPoint("a")
      .setExitPoint("c");
    const graph = only(inside(inner), saving());
    expect((await graph.execute(start())).pauses).toMatchObject([
      { reason: 'breakpoint before "b"' },
    ]);
    expect((await graph.resume("r")).pauses).toMatchObject([{ reason: 'breakpoint after "b"' }]);
    expect((await graph.resume("r")).data.said).toEqual(["a", "b", "c"]);
    expect(counts.all).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("whose input the inner node refuses can be answered again", async () => {
    const yes = schema((value) =>
      value === "yes" ? { value } : { issues: [{ message: "say yes" }] },
    );
    const inner = only(ask("ok"), {}, { input: yes });
    const store = new MemoryStore();
    const graph = only(inside(inner), saving(store));
    await graph.execute(start());
    const refusal = await rejection(graph.resume("r", { input: "no" }), SchemaError);
    expect(refusal).toEqual(schemaError("input", "say yes"));
    expect(Object.keys(await remembered(store, "r"))).toEqual(["subgraph 0.0", "subgraph"]);
    expect((await store.load("r")).status).toBe("paused");
    expect((await graph.resume("r", { input: "yes" })).data.said).toEqual(["yes"]);
  });

  test("reaches the outermost run through several subgraphs", async () => {
    const graph = only(inside(only(inside(only(ask("ok"))))), saving());
    expect((await graph.execute(start())).pauses).toMatchObject([{ name: "ok" }]);
    expect((await graph.resume("r", { input: "yes" })).data.said).toEqual(["yes"]);
  });
});

describe("a graph for each item of a list", () => {
  const node = (inner: StateGraph<Said, string>) =>
    parallel<Said, string, unknown>(
      ["a", "b", "c"],
      async (state, item, context) => {
        const run = subgraph<Said, Said, string>(inner, {
          in: () => ({ said: [item] }),
          out: (_state, { data }) => ({ said: data.said }),
        });
        const result = await run(state, context);
        return result instanceof State ? result.data.said : Reflect.get(result, "said");
      },
      { merge: (_state, said) => ({ said }) },
    );

  test("is a separate run, and is removed when its item completes", async () => {
    const ids = new Set<string>();
    const store = new MemoryStore();
    let online = false;
    const inner = only<Said>(
      (state) => {
        if (state.data.said[0] === "b" && !online) throw new Error("offline");
        return { said: [...state.data.said, "!"] };
      },
      { observer: ({ runId }) => ids.add(runId) },
    );
    const graph = only(node(inner), saving(store));
    await rejection(graph.execute(start()), ExecutionError);
    expect([...ids]).toEqual(["r:0:work[0]", "r:0:work[1]", "r:0:work[2]"]);
    const keys = Object.keys(await remembered(store, "r"));
    expect(keys.filter((key) => key.includes("subgraph"))).toEqual([
      "[1] subgraph 0.0",
      "[1] subgraph",
    ]);
    online = true;
    expect((await graph.resume("r")).data.said).toEqual([
      ["a", "!"],
      ["b", "!"],
      ["c", "!"],
    ]);
  });

  test("pauses separately from the others, even with the same name", async () => {
    const graph = only(node(only(ask("ok"))), saving());
    const paused = await graph.execute(start());
    expect(paused.pauses.map(({ name }) => name)).toEqual(["ok[0]", "ok[1]", "ok[2]"]);
    await graph.resume("r", { input: { "ok[2]": 3, "ok[0]": 1 } });
    const final = await graph.resume("r", { input: 2 });
    expect(final.data.said).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
  });
});

test("a drain reaches the graphs of all running items", async () => {
  const counts = new Counts();
  const store = new MemoryStore();
  const step: NodeFunction<Said> = async (state, { node }) => {
    counts.add(`${state.data.said[0]} ${node}`);
    await new Promise((resolve) => setImmediate(resolve));
    if (counts.of("b one") === 1 && counts.of("b two") === 0) void graph.drain();
    return state;
  };
  const inner = new StateGraph<Said, string>()
    .addNode("one", step)
    .addNode("two", step)
    .addEdge("one", "two")
    .setEntryPoint("one")
    .setExitPoint("two");
  const node = parallel<Said, string, string>(["a", "b", "c"], async (state, item, context) => {
    const run = subgraph<Said, Said, string>(inner, {
      in: () => ({ said: [item] }),
      out: (given) => given,
    });
    await run(state, context);
    return item;
  });
  const graph = only(node, saving(store));
  const failure = await rejection(graph.execute(start()), ExecutionError);
  expect(failure.code).toBe("ABORTED");
  expect(counts.all).toEqual({ "a one": 1, "b one": 1, "c one": 1 });
  expect((await graph.resume("r")).status).toBe("completed");
  expect(Object.values(counts.all)).toEqual([1, 1, 1, 1, 1, 1]);
});
