import { describe, expect, test } from "vitest";
import {
  type AnyEvent,
  CheckpointSaveError,
  ExecutionError,
  MemoryStore,
  type NodeFunction,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { linear, mark, rejection, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";
import { Counts, MortalStore, only, remembered } from "./nodes.js";

/** Runs a graph of trails inside a node, which puts its trail behind its own. */
function inside(inner: StateGraph<Trail, string>): NodeFunction<Trail> {
  return subgraph<Trail, Trail, string>(inner, {
    in: () => ({ trail: [] }),
    out: (state, { data }) => ({ trail: [...state.data.trail, `(${data.trail.join("")})`] }),
  });
}

const start = (): State<Trail> => State.create<Trail>({ trail: [] }, { runId: "r" });
const saving = (store: MemoryStore) => ({ checkpoint: { store, interval: 1 } });

describe("a subgraph", () => {
  test("runs another graph from input to output", async () => {
    const words = new StateGraph<{ text: string; count: number }>({ name: "words" })
      .addNode("count", (state) => ({ count: state.data.text.split(" ").length }))
      .addNode("double", (state) => ({ count: state.data.count * 2 }))
      .addEdge("count", "double")
      .setEntryPoint("count")
      .setExitPoint("double");
    const outer = new StateGraph<{ texts: readonly string[]; total: number }>()
      .addNode(
        "measure",
        subgraph(words, {
          in: (state) => ({ text: state.data.texts.join(" "), count: 0 }),
          out: (state, inner) => state.set("total", inner.data.count),
        }),
      )
      .setEntryPoint("measure")
      .setExitPoint("measure");
    const final = await outer.execute(State.create({ texts: ["a way", "mark"], total: 0 }));
    expect(final.data.total).toBe(6);
    expect(final).toMatchObject({ step: 1, checkpointNode: "measure" });
  });

  test("emits the inner graph's events to its own listeners, under a separate run", async () => {
    const events: AnyEvent[] = [];
    const inner = linear(["a", "b"], { name: "inner", observer: (event) => events.push(event) });
    await only(inside(inner)).execute(start());
    expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set(["r:0:work"]));
    expect(events.filter(({ type }) => type === "node.start")).toHaveLength(2);
  });

  test("leaves the inner graph's own store alone", async () => {
    const own = new MortalStore(new MemoryStore());
    const inner = linear(["a", "b"], { checkpoint: { store: own, interval: 1, preserve: true } });
    await only(inside(inner), saving(new MemoryStore())).execute(start());
    expect(own.saves).toBe(0);
    await inner.execute(start());
    expect(own.saves).toBe(3);
  });

  test("has its own maxIterations, whose error is the cause of the outer one's", async () => {
    const boom = new TypeError("boom");
    const inner = linear(["a", "b"], { name: "inner" }, { b: () => Promise.reject(boom) });
    const failure = await rejection(only(inside(inner)).execute(start()), ExecutionError);
    expect(failure).toMatchObject({ code: "NODE_FAILED", nodeName: "work" });
    const cause = failure.cause as ExecutionError;
    expect(cause).toBeInstanceOf(ExecutionError);
    expect(cause).toMatchObject({ code: "NODE_FAILED", nodeName: "b", path: ["a", "b"] });
    expect(cause.cause).toBe(boom);
    const short = await rejection(
      only(inside(linear(["a", "b"], { maxIterations: 1 }))).execute(start()),
      ExecutionError,
    );
    expect(short.cause).toMatchObject({ code: "MAX_ITERATIONS" });
  });

  test("refuses invalid options", () => {
    const inner = linear(["a"]);
    expect(() => subgraph({} as never, {} as never)).toThrow(configError("graph", "a StateGraph"));
    expect(() => subgraph(inner, {} as never)).toThrow(configError("subgraph.in"));
    const noOut = { in: () => ({ trail: [] }) } as never;
    expect(() => subgraph(inner, noOut)).toThrow(configError("subgraph.out"));
  });

  test("has a valid run id, however long and strange its names are", async () => {
    const ids: string[] = [];
    const inner = linear(["a"], { observer: ({ runId }) => ids.push(runId) });
    const name = `\u0007${"x".repeat(300)}`;
    const outer = new StateGraph<Trail, string>()
      .addNode(name, inside(inner))
      .setEntryPoint(name)
      .setExitPoint(name);
    expect((await outer.execute(start())).data.trail).toEqual(["(a)"]);
    expect(ids[0]).toMatch(/^r:0:_x+~[0-9a-f]{16}$/);
    expect(ids[0]).toHaveLength(200);
  });
});

describe("a subgraph with a crash inside", () => {
  const names = ["a", "b", "c"];
  const counting = (counts: Counts): StateGraph<Trail, string> => {
    const counted: NodeFunction<Trail> = (state, context) => {
      counts.add(context.node);
      return mark(state, context);
    };
    return linear(names, {}, { a: counted, b: counted, c: counted });
  };

  // Before the outer node, before the inner graph, after each of its nodes.
  test.each([1, 2, 3, 4, 5])("after %i saves continues after the last save", async (lives) => {
    const store = new MemoryStore();
    const counts = new Counts();
    const outer = only(inside(counting(counts)), saving(new MortalStore(store, lives)));
    await rejection(outer.execute(start()), CheckpointSaveError);
    const final = await only(inside(counting(counts)), saving(store)).resume("r");
    expect(final.data.trail).toEqual(["(abc)"]);
    const twice = names[lives - 2];
    expect(counts.all).toEqual(
      Object.fromEntries(names.map((name) => [name, name === twice ? 2 : 1])),
    );
  });

  test("after a failure runs the failed node, and not the previous ones", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    let online = false;
    const node: NodeFunction<Trail> = (state, context) => {
      counts.add(context.node);
      if (context.node === "b" && !online) throw new Error("offline");
      return mark(state, context);
    };
    const outer = only(inside(linear(names, {}, { a: node, b: node, c: node })), saving(store));
    await rejection(outer.execute(start()), ExecutionError);
    const { subgraph: child } = await remembered(store, "r");
    expect(child).toMatchObject({ status: "failed", checkpointNode: "a", step: 1 });
    online = true;
    expect((await outer.resume("r")).data.trail).toEqual(["(abc)"]);
    expect(counts.all).toEqual({ a: 1, b: 2, c: 1 });
  });

  test("is retried by the node's policy from the failed inner node", async () => {
    const counts = new Counts();
    const flaky: NodeFunction<Trail> = (state, context) => {
      counts.add(context.node);
      if (context.node === "b" && counts.of("b") < 3) throw new Error("busy");
      return mark(state, context);
    };
    const inner = linear(names, {}, { a: flaky, b: flaky, c: flaky });
    const retry = { maxAttempts: 3, initialInterval: 0 };
    const final = await only(inside(inner), {}, { retry }).execute(start());
    expect(final.data.trail).toEqual(["(abc)"]);
    expect(counts.all).toEqual({ a: 1, b: 3, c: 1 });
  });

  test("nests", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    const graph = (to: MemoryStore) => {
      const middle = linear(["x", "y"], {}, { y: inside(counting(counts)) });
      return only(inside(middle), saving(to));
    };
    // Before the outer graph, the middle one and the inner one, after x and a.
    await rejection(graph(new MortalStore(store, 5)).execute(start()), CheckpointSaveError);
    expect((await graph(store).resume("r")).data.trail).toEqual(["(x(abc))"]);
    expect(counts.all).toEqual({ a: 1, b: 2, c: 1 });
  });
});

test("in a loop each visit is a separate run, independent of the previous one", async () => {
  const ids = new Set<string>();
  const starts: number[] = [];
  const inner = linear(["a", "b"], {
    observer: ({ type, runId, data }) => {
      ids.add(runId);
      if (type === "graph.start") starts.push(Reflect.get(data, "step"));
    },
  });
  const outer = new StateGraph<Trail, string>(saving(new MemoryStore()))
    .addNode("again", inside(inner))
    .addNode("done", (state) => state)
    .addEdge("again", "again", (state) => state.data.trail.length < 3)
    .addEdge("again", "done")
    .setEntryPoint("again")
    .setExitPoint("done");
  const final = await outer.execute(start());
  expect(final.data.trail).toEqual(["(ab)", "(ab)", "(ab)"]);
  expect([...ids]).toEqual(["r:0:again", "r:1:again", "r:2:again"]);
  expect(starts).toEqual([0, 0, 0]);
});

describe("an inner run's ledger", () => {
  const spending = (online: () => boolean): StateGraph<Trail, string> => {
    const spend: NodeFunction<Trail> = (state, context) => {
      context.ledger.usage({ inputTokens: 10, costUsd: 0.1 });
      context.ledger.decision({ description: `take ${context.node}`, confidence: 0.9 });
      if (context.node === "b" && !online()) throw new Error("offline");
      return mark(state, context);
    };
    return linear(["a", "b"], {}, { a: spend, b: spend });
  };

  test("is in the outer one, once, even after a failure and a resume", async () => {
    const store = new MemoryStore();
    let online = false;
    const outer = only(inside(spending(() => online)), saving(store));
    const failure = await rejection(outer.execute(start()), ExecutionError);
    expect((failure.state as State<Trail>).ledger.usage.inputTokens).toBe(20);
    online = true;
    const { ledger } = await only(inside(spending(() => online)), saving(store)).resume("r");
    // The attempt that failed was paid for too.
    expect(ledger.usage).toMatchObject({ inputTokens: 30, costUsd: 0.3 });
    expect(ledger.decisions.map(({ description }) => description)).toEqual([
      "take a",
      "take b",
      "take b",
    ]);
  });

  test.each([1, 2, 3, 4])(
    "is in the outer one once after a crash behind %i saves",
    async (lives) => {
      const store = new MemoryStore();
      const graph = (to: MemoryStore) => only(inside(spending(() => true)), saving(to));
      await rejection(graph(new MortalStore(store, lives)).execute(start()), CheckpointSaveError);
      expect((await graph(store).resume("r")).ledger.usage.inputTokens).toBe(20);
    },
  );

  test("respects the outer graph's limits", async () => {
    const outer = only(inside(spending(() => true)), { ledger: { maxDecisions: 1 } });
    const { ledger } = await outer.execute(start());
    expect(ledger.decisions).toHaveLength(1);
    expect(ledger.dropped.decisions).toBe(1);
  });
});

describe("a stopped subgraph", () => {
  test("by a signal resumes inside", async () => {
    const store = new MemoryStore();
    const controller = new AbortController();
    const counts = new Counts();
    const node: NodeFunction<Trail> = (state, context) => {
      counts.add(context.node);
      if (context.node === "b") controller.abort();
      return mark(state, context);
    };
    const inner = linear(["a", "b", "c"], {}, { a: node, b: node, c: node });
    const outer = only(inside(inner), saving(store));
    const { signal } = controller;
    const failure = await rejection(outer.execute(start(), { signal }), ExecutionError);
    expect(failure).toMatchObject({ code: "ABORTED", nodeName: "work" });
    expect((await outer.resume("r")).data.trail).toEqual(["(abc)"]);
    expect(counts.all).toEqual({ a: 1, b: 1, c: 1 });
  });

  test("by a drain of the outer graph resumes inside", async () => {
    const store = new MemoryStore();
    const counts = new Counts();
    const node: NodeFunction<Trail> = (state, context) => {
      counts.add(context.node);
      if (context.node === "b" && counts.of("b") === 1) void outer.drain();
      return mark(state, context);
    };
    const inner = linear(["a", "b", "c"], {}, { a: node, b: node, c: node });
    const outer = only(inside(inner), saving(store));
    expect(await rejection(outer.execute(start()), ExecutionError)).toMatchObject({
      code: "ABORTED",
      nodeName: "work",
    });
    expect((await store.load("r")).status).toBe("in_progress");
    expect((await outer.resume("r")).data.trail).toEqual(["(abc)"]);
    expect(counts.all).toEqual({ a: 1, b: 1, c: 1 });
  });
});

describe("the topology of a graph with a subgraph", () => {
  test("has the inner graph at its node, whatever the node's options", () => {
    const inner = linear(["x", "y"]);
    const { nodes } = new StateGraph<Trail>()
      .addNode("a", mark)
      .addNode("b", inside(inner), { retry: { maxAttempts: 2 } })
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b").topology;
    expect(nodes.map(({ name, graph }) => [name, graph])).toEqual([
      ["a", undefined],
      ["b", inner.topology],
    ]);
  });

  test("includes a recursive graph once", () => {
    const self = new StateGraph<Trail, string>({ name: "self" });
    self.addNode("again", inside(self)).setEntryPoint("again").setExitPoint("again");
    const [again] = self.topology.nodes;
    expect(again?.graph?.nodes.map(({ name, graph }) => [name, graph?.name])).toEqual([
      ["again", undefined],
    ]);
  });
});
