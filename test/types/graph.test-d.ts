import { describe, expectTypeOf, test } from "vitest";
import {
  type AnyEvent,
  always,
  and,
  append,
  keyEquals,
  keyExists,
  max,
  type NodeContext,
  type NodeFunction,
  not,
  or,
  type Predicate,
  State,
  StateGraph,
  sum,
  union,
} from "waymark";

interface Article {
  topic: string;
  text?: string;
  score: number;
  tags: string[];
}

const chained = new StateGraph<Article>({ name: "article" })
  .addNode("draft", (state) => state.set("text", state.data.topic))
  .addNode("review", async () => ({ score: 1 }));

describe("chained, node names gather in the type", () => {
  test("so an edge between known nodes compiles", () => {
    const graph = chained
      .addEdge("draft", "review")
      .addEdge("review", "draft", (state) => state.data.score < 0.8, "again")
      .addNode("publish", (state) => state)
      .addEdge("review", "publish", undefined, "good enough")
      .setEntryPoint("draft")
      .setExitPoint("publish")
      .validate();
    expectTypeOf(graph).toEqualTypeOf<StateGraph<Article, "draft" | "review" | "publish">>();
    expectTypeOf(graph.execute).returns.resolves.toEqualTypeOf<State<Article>>();
    expectTypeOf(graph.resume)
      .parameter(0)
      .toEqualTypeOf<string | { readonly checkpointId: string }>();
  });

  test("and a misspelt one does not", () => {
    // @ts-expect-error no such node
    chained.addEdge("draft", "reveiw");
    // @ts-expect-error no such node
    chained.addEdge("drfat", "review");
    // @ts-expect-error no such node
    chained.setEntryPoint("drfat");
    // @ts-expect-error no such node
    chained.setExitPoint("publish");
    // @ts-expect-error it is added only after this edge
    chained.addEdge("draft", "late").addNode("late", (state) => state);
    // @ts-expect-error there is no node yet
    new StateGraph<Article>().setEntryPoint("draft");
  });
});

describe("as statements", () => {
  test("with string, every name is for run time to check", () => {
    const graph = new StateGraph<Article, string>();
    graph.addNode("draft", (state) => state);
    graph.addEdge("draft", "anything");
    graph.setEntryPoint("anything");
    for (const name of ["a", "b"] as string[]) graph.addNode(name, (state) => state);
    expectTypeOf(graph).toEqualTypeOf<StateGraph<Article, string>>();
  });

  test("with the names as a union, a misspelt one does not compile", () => {
    const graph = new StateGraph<Article, "draft" | "review">();
    graph.addNode("draft", (state) => state);
    graph.addEdge("draft", "review");
    // @ts-expect-error no such name
    graph.addEdge("draft", "reveiw");
    // @ts-expect-error no such name
    graph.setEntryPoint("drfat");
    // @ts-expect-error no such name
    graph.setExitPoint("drfat");
  });
});

describe("a node", () => {
  const graph = new StateGraph<Article>();

  test("gets the State of its graph and a context", () => {
    graph.addNode("draft", (state, context) => {
      expectTypeOf(state).toEqualTypeOf<State<Article>>();
      expectTypeOf(context).toEqualTypeOf<NodeContext<Article>>();
      expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
      return state;
    });
  });

  test("returns a State, an object to merge, or a promise of one", () => {
    graph.addNode("a", (state) => state.merge({ score: 1 }));
    graph.addNode("b", () => ({}));
    graph.addNode("c", async (state) => ({ tags: state.data.tags }));
    graph.addNode("d", (state) => (state.data.score > 1 ? state : { score: 1 }));
    graph.addNode("e", async (state) => (state.data.score > 1 ? state : { text: "x" }));
    expectTypeOf<NodeFunction<Article>>().returns.not.toBeAny();
  });

  test("and nothing else", () => {
    // @ts-expect-error nothing
    graph.addNode("a", () => {});
    // @ts-expect-error a number
    graph.addNode("b", () => 5);
    // @ts-expect-error a key that the data has not
    graph.addNode("c", () => ({ scroe: 1 }));
    // @ts-expect-error beside one that it has
    graph.addNode("c", () => ({ score: 1, txet: "x" }));
    // @ts-expect-error in a promise
    graph.addNode("c", async () => ({ score: 1, txet: "x" }));
    // @ts-expect-error on one of several ways
    graph.addNode("c", (state) => (state.data.score > 1 ? state : { score: 1, txet: "x" }));
    // @ts-expect-error on one of several ways, in a promise
    graph.addNode("c", async (state) => {
      if (state.data.score > 1) return { text: "x" };
      return { score: 1, txet: "x" };
    });
    // @ts-expect-error a value of another type
    graph.addNode("d", () => ({ score: "high" }));
    // @ts-expect-error a promise of one
    graph.addNode("e", async () => ({ score: "high" }));
    // @ts-expect-error the State of another graph
    graph.addNode("f", () => State.create({ other: 1 }));
    // @ts-expect-error not a function
    graph.addNode("g", { run: () => ({}) });
    // @ts-expect-error a value that may be undefined where the data's may not
    graph.addNode("h", (state): { score: number | undefined } => ({ score: state.data.score }));
  });
});

describe("usage", () => {
  test("has known counters at the top, and one's own under counters", () => {
    new StateGraph<Article>().addNode("draft", (state, { ledger }) => {
      ledger.usage({ inputTokens: 1, costUsd: 0.1, counters: { searches: 2 } });
      // @ts-expect-error misspelt
      ledger.usage({ inputToken: 1 });
      return state;
    });
  });
});

describe("reducers", () => {
  interface Log {
    lines: readonly string[];
    more?: string[];
    best?: number;
    total: number;
    kind: "a" | "b";
    seen: Map<string, { n: number }>;
  }

  test("give a value of their key's type", () => {
    new StateGraph<Log>({
      reducers: {
        lines: append,
        more: union,
        best: max,
        total: (current, update) => current + update,
        kind: (_current, update) => update,
        seen: (current, update) => new Map([...current, ...update]),
      },
    });
    // @ts-expect-error no such key
    new StateGraph<Log>({ reducers: { totl: sum } });
    // @ts-expect-error a number is no list
    new StateGraph<Log>({ reducers: { total: append } });
    // @ts-expect-error a text is no number
    new StateGraph<Log>({ reducers: { total: (current, update) => `${current}${update}` } });
    // @ts-expect-error not a number yet
    new StateGraph<Log>({ reducers: { total: async (current, update) => current + update } });
  });
});

test("a migration returns data, not a promise of it", () => {
  new StateGraph<Article>({ version: 1, migrations: { 0: (old: { topic: string }) => old } });
  // @ts-expect-error not data yet
  new StateGraph<Article>({ version: 1, migrations: { 0: async () => ({}) } });
});

describe("a run's State", () => {
  test("is that of its graph", () => {
    void chained.execute(State.create<Article>({ topic: "x", score: 0, tags: [] }));
    // @ts-expect-error a key is missing
    void chained.execute(State.create({ topic: "x" }));
    // @ts-expect-error not a State
    void chained.execute({ topic: "x", score: 0, tags: [] });
  });
});

describe("predicates", () => {
  test("know the data of the edge they are on", () => {
    const graph = chained
      .addEdge("draft", "review", keyEquals("score", 1))
      .addEdge("draft", "review", and(keyExists("text"), not(keyEquals("topic", "x"))))
      .addEdge(
        "draft",
        "review",
        or(always, (state) => state.data.tags.length > 0),
      );
    // @ts-expect-error no such key
    graph.addEdge("draft", "review", keyExists("txet"));
    // @ts-expect-error a value of another type
    graph.addEdge("draft", "review", keyEquals("score", "high"));
    // @ts-expect-error not a boolean
    graph.addEdge("draft", "review", (state) => state.data.score);
    // @ts-expect-error not a boolean yet
    graph.addEdge("draft", "review", async () => true);
    // @ts-expect-error of other data
    graph.addEdge("draft", "review", (state: State<{ other: number }>) => state.data.other > 1);
  });

  test("are functions of a State", () => {
    expectTypeOf(keyExists<Article>("text")).toEqualTypeOf<Predicate<Article>>();
    expectTypeOf<Predicate<Article>>().toEqualTypeOf<(state: State<Article>) => boolean>();
  });
});

describe("on and off", () => {
  test("give each type its own payload", () => {
    chained
      .on("node.start", ({ type, data, runId }) => {
        expectTypeOf(type).toEqualTypeOf<"node.start">();
        expectTypeOf(data.node).toBeString();
        expectTypeOf(data.step).toBeNumber();
        expectTypeOf(runId).toBeString();
      })
      .on("edge.evaluate", ({ data }) => expectTypeOf(data.result).toBeBoolean())
      .on("graph.fail", async ({ data }) => expectTypeOf(data.code).toBeString())
      .on("checkpoint.save", ({ data }) =>
        expectTypeOf(data.bytes).toEqualTypeOf<number | undefined>(),
      );
  });

  test("give * a union that narrows on type", () => {
    const log = (event: AnyEvent): void => {
      if (event.type === "cycle.detected") expectTypeOf(event.data.visitCount).toBeNumber();
    };
    chained.on("*", log).off("*", log).on("node.complete", log).off("node.start", log);
    new StateGraph({ observer: [log, { onEvent: log }, "console", undefined] });
  });

  test("and refuse what is none", () => {
    // @ts-expect-error no such event
    chained.on("node.begin", () => {});
    // @ts-expect-error no such field
    chained.on("node.start", ({ data }) => data.visitCount);
    // @ts-expect-error of another event
    chained.on("node.start", (event: AnyEvent & { type: "graph.fail" }) => event);
    // @ts-expect-error not a function
    chained.on("node.start", { onEvent() {} });
  });
});
