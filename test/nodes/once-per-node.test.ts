import { expect, test } from "vitest";
import {
  chain,
  ExecutionError,
  type NodeContext,
  type NodeFunction,
  parallel,
  route,
  State,
  StateGraph,
  subgraph,
} from "waymark";
import { rejection } from "../graphs.js";
import { configError } from "../matchers.js";
import { only } from "./nodes.js";

interface Sum {
  readonly n: number;
}

const start = (): State<Sum> => State.create<Sum>({ n: 0 });

const double = new StateGraph<Sum>()
  .addNode("double", (state) => ({ n: state.data.n * 2 }))
  .setEntryPoint("double")
  .setExitPoint("double");

/** One node of each kind, that makes `n` of what it is given and its own numbers. */
const kinds: Readonly<Record<string, (...numbers: number[]) => NodeFunction<Sum>>> = {
  chain: (...numbers) => chain(numbers, (state, n) => ({ n: state.data.n + n })),
  parallel: (...numbers) =>
    parallel(numbers, (_state, n) => n, {
      merge: (state, results) => ({ n: results.reduce((sum, n) => sum + n, state.data.n) }),
    }),
  route: (number = 0) => route(() => "add", { add: (state) => ({ n: state.data.n + number }) }),
  subgraph: () => subgraph(double, { in: ({ data }) => data, out: (_state, { data }) => data }),
};

/** What a node came to, as a State. */
async function came(node: NodeFunction<Sum>, state: State<Sum>, context: NodeContext<Sum>) {
  return state.merge((await node(state, context)) as State<Sum>);
}

test.each(Object.entries(kinds))(
  "a second %s in one node is refused, as it would get the results of the first",
  async (kind, make) => {
    const [first, second] = [make(1, 2), make(3, 4, 5)];
    const graph = only<Sum>(async (state, context) =>
      second(await came(first, state, context), context),
    );
    const { cause } = await rejection(graph.execute(start()), ExecutionError);
    expect(cause).toEqual(configError(kind, "is called twice in one node: add a node for each"));
    const again = only<Sum>(async (state, context) =>
      first(await came(first, state, context), context),
    );
    expect((await rejection(again.execute(start()), ExecutionError)).cause).toEqual(
      configError(kind),
    );
  },
);

test("one of each kind is allowed, and one in each item", async () => {
  const graph = only<Sum>(async (given, context) => {
    let state = given;
    for (const make of Object.values(kinds)) state = await came(make(1, 2), state, context);
    return state;
  });
  // (1 + 2), + (1 + 2), + 1, * 2
  expect((await graph.execute(start())).data.n).toBe(14);
  const items = only<Sum>(
    chain([1, 2, 3], async (state: State<Sum>, n, context) =>
      came(
        chain([n, n], (inner: State<Sum>, m) => ({ n: inner.data.n + m })),
        state,
        context,
      ),
    ),
  );
  expect((await items.execute(start())).data.n).toBe(12);
});

test("a failed one may be retried by its node, and continues where it was", async () => {
  const worked: number[] = [];
  const node = chain([1, 2, 3], (state: State<Sum>, n) => {
    worked.push(n);
    if (worked.length === 2) throw new Error("once");
    return { n: state.data.n + n };
  });
  const graph = only<Sum>((state, context) =>
    came(node, state, context).catch(() => came(node, state, context)),
  );
  expect((await graph.execute(start())).data.n).toBe(6);
  expect(worked).toEqual([1, 2, 2, 3]);
});
