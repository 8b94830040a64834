import { isWaymarkError } from "../errors.js";
import { type EventBus, NestedBus } from "../events.js";
import { setInner } from "../graph/description.js";
import type { AnyResult, CheckedResult, NodeFunction } from "../graph/node.js";
import { hash } from "../graph/topology.js";
import { callable, check, checkOptions } from "../options.js";
import { isExpired } from "../run/pauses/pauses.js";
import { StateGraph } from "../run/state-graph.js";
import type { RunContext } from "../run/visit/context.js";
import { progressOf } from "../state/derive.js";
import type { Immutable } from "../state/immutable.js";
import type { PauseRequest } from "../state/pauses.js";
import { defined } from "../state/shape.js";
import { State } from "../state/state.js";
import { ChildStore } from "./child-store.js";
import type { Change } from "./items.js";
import { oncePerNode } from "./once-per-node.js";

/** Options of {@link subgraph}. */
export interface SubgraphOptions<
  D extends object,
  C extends object,
  I = C | Immutable<C>,
  R = Change<D>,
> {
  /** The data that the inner graph starts with. */
  readonly in: (state: State<D>) => I;
  /** Builds the node's result from the inner graph's final State. */
  readonly out: (state: State<D>, inner: State<C>) => R;
}

/** The maximum length of a run id. */
const MAX_ID = 200;

const isGraph = check("a StateGraph", (value) => value instanceof StateGraph);

/**
 * A node that runs another graph. The inner run's steps are saved in the outer run's checkpoint, whatever the
 * inner graph's own store is, so a resume continues in the middle of it. A pause inside pauses the outer run,
 * whose input is passed on. The inner run's ledger entries are also in the outer ledger. Its events reach the
 * listeners of both graphs, once each, with the `path` of nodes that leads to them.
 *
 * @throws ExecutionError of the inner run, from the node.
 * @throws ConfigError if an option is invalid.
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
export function subgraph<
  D extends object,
  C extends object,
  N extends string,
  R extends AnyResult<D> = Change<D>,
  I extends AnyResult<C> = C | Immutable<C>,
>(
  graph: StateGraph<C, N>,
  options: SubgraphOptions<
    D,
    C,
    CheckedResult<C, I, C | Immutable<C>>,
    CheckedResult<D, R, Change<D>>
  >,
): NodeFunction<D>;
export function subgraph<D extends object, C extends object, N extends string>(
  graph: StateGraph<C, N>,
  options: SubgraphOptions<D, C>,
): NodeFunction<D> {
  isGraph("graph", graph);
  checkOptions("subgraph", options, { in: callable, out: callable });
  callable("subgraph.in", options.in);
  callable("subgraph.out", options.out);
  const node = oncePerNode<D>("subgraph", async (state, context) => {
    const { signal, draining, run, node, runId: outerRunId } = context;
    const { nodes } = graph.topology;
    const opens = (inner: string): boolean =>
      nodes.some(({ name, graph: deeper }) => name === inner && deeper !== undefined);
    const store = new ChildStore(context, opens);
    const nest = (own: EventBus): EventBus =>
      new NestedBus(own, run.settings.bus, node, outerRunId);
    const claim = async () => run.control.lent;
    const more = { nest, claim, isInner: true };
    const inner = StateGraph.inside(graph, store, draining, undefined, more);
    let last = store.latest<C>();
    if (last === undefined) {
      // Each visit in a loop, and each item of a list, has its own run.
      const runId = shortened(context.idempotencyKey, MAX_ID);
      last = await inner.execute(State.create(options.in(state) as C, { runId }), { signal });
    } else if (last.status !== "paused") {
      last = await inner.resume(last.runId, { signal });
    }
    while (last.status === "paused") {
      const { input, spent } = await answers(last, context);
      const forget = (): void => {
        for (const name of spent.splice(0)) context.forgetAnswer(name);
      };
      store.onSave = forget;
      try {
        last = await inner.resume(last.runId, { signal, input });
      } catch (error) {
        // The inner graph may accept another input.
        if (isWaymarkError(error, "CONFIG") || isWaymarkError(error, "SCHEMA")) forget();
        const still = store.latest<C>();
        if (!isWaymarkError(error, "SCHEMA") || still?.status !== "paused") throw error;
        context.refuse(error);
        last = still;
      }
    }
    return options.out(state, last);
  });
  setInner(node, () => graph.topology);
  return node;
}

/** A text as a valid run id: a long one is cut, with a hash in place of the rest. */
function shortened(text: string, max: number): string {
  const short = text.length <= max ? text : `${text.slice(0, max - 17)}~${hash(text)}`;
  return short.replace(/[\p{Cc}\p{Cs}]/gu, "_");
}

/**
 * The input for a paused run, and the names of the outer pauses that its answers are for.
 *
 * @throws PauseRequested if there is none yet: the outer run pauses.
 */
async function answers<D extends object, C extends object>(
  paused: State<C>,
  context: RunContext<D>,
): Promise<{ input: unknown; spent: string[] }> {
  const { pauses, checkpointNode } = paused;
  const node = progressOf(paused).unfinished?.node || checkpointNode || context.node;
  const asked = pauses.map((pause) => ({ pause, outer: (pause.name || node) + context.itemPath }));
  const given = () =>
    asked
      .map(({ pause, outer }) => [pause.name, context.recallAnswer(outer)] as const)
      .filter(([, answer]) => answer !== undefined);
  // After the deadline, the inner graph decides what happens.
  if (given().length === 0 && !pauses.some(isExpired)) {
    const settled = await Promise.allSettled(
      asked.map(({ pause, outer }) => context.answer(outerRequest(pause, outer))),
    );
    for (const one of settled) if (one.status === "rejected") throw one.reason;
  }
  const known = given();
  return {
    input: pauses.length > 1 && known.length > 0 ? Object.fromEntries(known) : known[0]?.[1],
    spent: asked.map(({ outer }) => outer),
  };
}

/** The outer run's request for an inner pause. */
function outerRequest(pause: PauseRequest, name: string): PauseRequest {
  const { reason, ask, schema, deadline, refused } = pause;
  return Object.freeze(defined({ name, reason, ask, schema, deadline, refused }));
}
