import type { Immutable } from "immer";
import { isWaymarkError } from "../errors.js";
import type { NodeContext, NodeFunction } from "../graph/node.js";
import { callable, check, checkOptions } from "../options.js";
import { answerKey } from "../run/pauses.js";
import { StateGraph } from "../run/state-graph.js";
import { State } from "../state/state.js";
import { alone } from "./alone.js";
import { ChildStore } from "./child-store.js";
import { shortened } from "./names.js";
import { type Change, placeOf, rootOf } from "./scope.js";

/** Options of {@link subgraph}. */
export interface SubgraphOptions<D extends object, C extends object> {
  /** The data that the inner graph starts with. */
  readonly in: (state: State<D>) => C | Immutable<C>;
  /** Makes the node's result of the State that the inner graph ended with. */
  readonly out: (state: State<D>, inner: State<C>) => Change<NoInfer<D>>;
}

/** How long a run's id may be. */
const MAX_ID = 200;

const isGraph = check("a StateGraph", (value) => value instanceof StateGraph);

/**
 * A node that runs another graph. The inner run's steps are saved in the outer run's checkpoint,
 * whatever the inner graph's own store is, so a resume goes on in the middle of it. A pause inside
 * pauses the outer run, and its input goes inside. What the inner run writes into its ledger is also
 * in the outer one's. The inner graph's listeners are told its events.
 *
 * @throws ExecutionError of the inner run, out of the node.
 * @throws ConfigError when an option is not what it must be.
 *
 * @example
 * ```ts
 * import { State, StateGraph, subgraph } from "waymark";
 *
 * const double = new StateGraph<{ n: number }>()
 *   .addNode("double", (state) => ({ n: state.data.n * 2 }))
 *   .setEntryPoint("double")
 *   .setExitPoint("double");
 *
 * const graph = new StateGraph<{ total: number }>()
 *   .addNode("inner", subgraph(double, {
 *     in: (state) => ({ n: state.data.total }),
 *     out: (_state, inner) => ({ total: inner.data.n }),
 *   }))
 *   .setEntryPoint("inner")
 *   .setExitPoint("inner");
 *
 * console.log((await graph.execute(State.create({ total: 21 }))).data.total); // 42
 * ```
 */
export function subgraph<D extends object, C extends object, N extends string>(
  graph: StateGraph<C, N>,
  options: SubgraphOptions<D, C>,
): NodeFunction<D> {
  isGraph("graph", graph);
  checkOptions("subgraph", options, { in: callable, out: callable });
  callable("subgraph.in", options.in);
  callable("subgraph.out", options.out);
  return alone("subgraph", async (state, context) => {
    const { signal, draining } = context;
    const store = new ChildStore(context);
    const inner = StateGraph.inside(graph, store, draining);
    let last = store.latest<C>();
    if (last === undefined) {
      // In a loop, and for each item of a list, another run.
      const runId = shortened(context.idempotencyKey, MAX_ID);
      last = await inner.execute(State.create(options.in(state) as C, { runId }), { signal });
    } else if (last.status !== "paused") {
      last = await inner.resume(last.runId, { signal });
    }
    while (last.status === "paused") {
      const { input, spent } = await answers(last, context);
      const forget = (): void => {
        for (const key of spent.splice(0)) rootOf(context).forget(key);
      };
      store.onSave = forget;
      try {
        last = await inner.resume(last.runId, { signal, input });
      } catch (error) {
        // Another input may be what the inner graph wants.
        if (isWaymarkError(error, "CONFIG")) forget();
        throw error;
      }
    }
    return options.out(state, last);
  });
}

/**
 * The input for a paused run, and the keys of its answers.
 *
 * @throws PauseSignal when there is none yet: the outer run pauses.
 */
async function answers<D extends object, C extends object>(
  paused: State<C>,
  context: NodeContext<D>,
): Promise<{ input: unknown; spent: string[] }> {
  const { pauses, unfinished, checkpointNode } = paused;
  const node = unfinished?.node || checkpointNode || context.node;
  const asked = pauses.map((pause) => {
    const name = (pause.name || node) + placeOf(context);
    return { ...pause, outer: name, answer: rootOf(context).recall(answerKey(name)) };
  });
  const given = asked.filter(({ answer }) => answer !== undefined);
  if (given.length === 0) {
    const missing = await Promise.allSettled(
      asked.map(({ outer, reason, ask }) => context.pause(outer, { reason, ask })),
    );
    for (const one of missing) if (one.status === "rejected") throw one.reason;
  }
  const byName = Object.fromEntries(given.map(({ name, answer }) => [name, answer]));
  return {
    input: pauses.length > 1 && given.length > 0 ? byName : given[0]?.answer,
    spent: asked.map(({ outer }) => answerKey(outer)),
  };
}
