import { describe, expectTypeOf, test } from "vitest";
import {
  chain,
  type DagTasks,
  dag,
  type ItemContext,
  map,
  type NodeFunction,
  type Patch,
  parallel,
  route,
  type State,
  StateGraph,
  subgraph,
} from "waymark";

interface Doc {
  words: string[];
  text: string;
  sizes: number[];
}

const inner = new StateGraph<{ n: number }>()
  .addNode("n", (state) => state)
  .setEntryPoint("n")
  .setExitPoint("n");

describe("the nodes that are made", () => {
  test("take their types from the graph they are added to", () => {
    new StateGraph<Doc>()
      .addNode(
        "chain",
        chain(
          (state) => state.data.words,
          (state, word, context) => {
            expectTypeOf(word).toEqualTypeOf<string>();
            expectTypeOf(state).toEqualTypeOf<State<Doc>>();
            expectTypeOf(context).toEqualTypeOf<ItemContext<Doc>>();
            return { text: state.data.text + word };
          },
        ),
      )
      .addNode(
        "parallel",
        parallel([1n, 2n], async (_state, item) => Number(item), {
          merge: (state, sizes) => {
            expectTypeOf(sizes).toEqualTypeOf<readonly number[]>();
            return state.set("sizes", [...sizes]);
          },
          onProgress: (_completed, _total, size) => expectTypeOf(size).toEqualTypeOf<number>(),
        }),
      )
      .addNode(
        "route",
        route(
          (state) => state.data.text,
          {
            a: () => ({ text: "a" }),
            b: chain(["x"], (_state, item) => ({ text: item })),
            c: (state) => state.set("text", "c"),
          },
          (state) => state,
        ),
      )
      .addNode(
        "subgraph",
        subgraph(inner, {
          in: (state) => ({ n: state.data.words.length }),
          out: (_state, { data }) => ({ sizes: [data.n] }),
        }),
      )
      .addEdge("chain", "parallel");
  });

  test("refuse changes that the data can't take", () => {
    const graph = new StateGraph<Doc>();
    const echo = (_state: State<Doc>, item: string): string => item;
    // @ts-expect-error text is a string
    const number = () => chain<Doc, string>(["x"], () => ({ text: 1 }));
    const strings = { merge: (_state: State<Doc>, sizes: readonly string[]) => ({ sizes }) };
    // @ts-expect-error sizes are numbers
    const sizes = () => graph.addNode("b", parallel(["x"], echo, strings));
    // @ts-expect-error there is no title
    const title = () => route<Doc>(() => "a", { a: (state) => state.set("title", "") });
    expectTypeOf([number, sizes, title]).toExtend<readonly unknown[]>();
    // @ts-expect-error n is a number
    graph.addNode("d", subgraph(inner, { in: () => ({ n: "1" }), out: (state) => state }));
  });

  test("refuse a key that the data has not beside one that it has", () => {
    const graph = new StateGraph<Doc>();
    const chained = () =>
      graph.addNode(
        "a",
        chain(
          ["x"],
          // @ts-expect-error there is no txet
          (_, text) => ({ text, txet: text }),
        ),
      );
    const promised = () =>
      graph.addNode(
        "b",
        chain(
          ["x"],
          // @ts-expect-error there is no txet
          async (_, text) => ({ text, txet: text }),
        ),
      );
    const merged = () =>
      graph.addNode(
        "c",
        parallel(["x"], (_, text) => text.length, {
          // @ts-expect-error there is no szies
          merge: (_, sizes) => ({ sizes, szies: sizes }),
        }),
      );
    const out = () =>
      graph.addNode(
        "d",
        subgraph(inner, {
          in: () => ({ n: 1 }),
          // @ts-expect-error there is no txet
          out: (state) => ({ text: state.data.text, txet: "" }),
        }),
      );
    expectTypeOf([chained, promised, merged, out]).toExtend<readonly unknown[]>();
  });

  test("know the literals of the data in what is returned", () => {
    interface Ticket {
      kind: "bill" | "bug";
      replies: { role: "user" | "assistant"; text: string }[];
    }
    const reply = { role: "user", text: "" } as const;
    new StateGraph<Ticket>()
      .addNode("sync", () => ({ kind: "bug" }))
      .addNode("async", async ({ data }) => ({
        replies: [...data.replies, { role: "user", text: "" }],
      }))
      .addNode("either", async (state) => (state.step > 1 ? state : { kind: "bug" }), {
        errorHandler: async (_error, state) => (state.step > 1 ? state : { kind: "bill" }),
      })
      .addNode("never", async () => Promise.reject(new Error("no")))
      .addNode("any", async () => JSON.parse("{}"))
      .addNode(
        "chain",
        chain(["x"], (state, text) => (text === "" ? state : { kind: "bill" }), {
          intermediate: (state, states) => (states.length > 1 ? state : { replies: [reply] }),
        }),
      )
      .addNode(
        "route",
        route(
          ({ data }) => data.kind,
          {
            bill: () => ({ kind: "bill" }),
            bug: async (state, { signal }) => (signal.aborted ? state : { replies: [reply] }),
          },
          async () => ({ kind: "bug" }),
        ),
      );
  });

  test("take handlers from a table", () => {
    const handlers: Record<string, NodeFunction<Doc>> = {};
    new StateGraph<Doc>().addNode(
      "route",
      route(({ data }) => data.text, handlers),
    );
  });

  test("fit data that is known only in part", () => {
    const made = <D extends Doc>(): NodeFunction<D>[] => [
      chain(["x"], (state) => state),
      chain(["x"], (_, text) => ({ text }) as Patch<D>),
      parallel(["x"], (_, text) => text, { merge: (_, [text]) => ({ text }) as Patch<D> }),
      subgraph(inner, { in: () => ({ n: 1 }), out: () => ({ text: "" }) as Patch<D> }),
      route((state: State<D>) => state.runId, { a: async () => ({ text: "" }) as Patch<D> }),
    ];
    const graph = <D extends Doc>(node: NodeFunction<D>) =>
      new StateGraph<D>()
        .addNode("made", node)
        .addNode("state", async (state) => state, { errorHandler: (_error, state) => state })
        .addNode("patch", async () => ({ text: "" }) as Patch<D>);
    expectTypeOf(graph<Doc>).toBeFunction();
    expectTypeOf(made<Doc>).returns.toEqualTypeOf<NodeFunction<Doc>[]>();
  });

  test("stand on their own", () => {
    const node = parallel(
      (state: State<Doc>) => state.data.words,
      (_state, word) => word.length,
    );
    expectTypeOf(node).toEqualTypeOf<NodeFunction<Doc>>();
    const other = chain(["a"], (state: State<Doc>, item) => ({ text: state.data.text + item }));
    expectTypeOf(other).toEqualTypeOf<NodeFunction<Doc>>();
  });
});

describe("a dag", () => {
  test("knows its data, or learns it from its tasks", () => {
    const graph = dag<Doc>({
      text: { run: () => "a" },
      sizes: { dependsOn: ["text"], run: async ({ data }) => [data.text.length] },
    });
    expectTypeOf(graph).toEqualTypeOf<StateGraph<Doc, string>>();
    const learnt = dag({ a: { run: () => 1 }, b: { dependsOn: ["a"], run: async () => "b" } });
    expectTypeOf(learnt.execute).parameter(0).toEqualTypeOf<State<{ a: number; b: string }>>();
  });

  test("refuses results and dependencies that don't fit", () => {
    const wrong: DagTasks<Doc> = {
      // @ts-expect-error text is a string
      text: { run: () => 1 },
      // @ts-expect-error there is no title
      sizes: { dependsOn: ["title"], run: () => [] },
    };
    expectTypeOf(wrong).toExtend<object>();
  });

  test("shows a task what no task makes and what it depends on, and nothing else", () => {
    const checked = dag<Doc>();
    const graph = checked({
      text: ({ data }) => data.words.join(" "),
      sizes: {
        dependsOn: ["text"],
        run: ({ data }) => {
          expectTypeOf(data.text).toEqualTypeOf<string>();
          return [data.text.length, data.words.length];
        },
      },
    });
    expectTypeOf(graph).toEqualTypeOf<StateGraph<Doc, string>>();
    checked({
      text: () => "a",
      // @ts-expect-error it does not depend on text
      sizes: { run: ({ data }) => [data.text.length] },
    });
    checked({
      text: () => "a",
      // @ts-expect-error it does not depend on text either
      sizes: ({ data }) => [data.text.length],
    });
    checked({
      text: () => "a",
      words: () => ["a"],
      // @ts-expect-error it depends on words alone
      sizes: { dependsOn: ["words"], run: ({ data }) => [data.text.length] },
    });
    checked({
      text: () => "a",
      // @ts-expect-error no task makes the words
      sizes: { dependsOn: ["words"], run: () => [] },
    });
    checked({
      // @ts-expect-error text is a string
      text: () => 1,
    });
    checked({
      // @ts-expect-error the data has no title
      title: () => "a",
    });
  });

  test("takes nodes, which see their own key and what they depend on", () => {
    const checked = dag<Doc>();
    checked({
      text: { node: (state) => state.set("text", state.data.words.join(" ")) },
      sizes: {
        dependsOn: ["text"],
        node: ({ data }) => {
          expectTypeOf(data.text).toEqualTypeOf<string>();
          return { sizes: [...data.sizes, data.text.length] };
        },
      },
    });
    checked({
      text: () => "a",
      // @ts-expect-error it does not depend on text
      sizes: { node: ({ data }) => ({ sizes: [data.text.length] }) },
    });
    checked({
      // @ts-expect-error text is a string
      text: { node: () => ({ text: 1 }) },
    });
    checked({
      // @ts-expect-error a task is a function or a node
      text: { run: () => "a", node: () => ({ text: "a" }) },
    });
  });

  test("maps the items of a task it depends on", () => {
    dag<Doc>()({
      words: () => ["a"],
      sizes: {
        dependsOn: ["words"],
        run: map(
          ({ data }) => data.words,
          (_state, word) => {
            expectTypeOf(word).toEqualTypeOf<string>();
            return word.length;
          },
        ),
      },
    });
  });
});
