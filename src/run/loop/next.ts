import { messageOf, show } from "../../errors.js";
import { type Edge, type GraphNode, showTarget, targetOf } from "../../graph/node.js";
import type { State } from "../../state/state.js";
import { Failure } from "./failure.js";

/** That a run can take no edge from a node: none matches, or a predicate failed. */
export class NoEdge<D extends object> {
  readonly failure: Failure<D>;
  /** Tells it from an edge, faster than its class does. */
  readonly to = undefined;
  /** How many edges did not match. */
  readonly tried: number;

  constructor(failure: Failure<D>, tried: number) {
    this.failure = failure;
    this.tried = tried;
  }

  /** The failure, once its State is saved. */
  at(state: State<D>): Failure<D> {
    const { code, node, message, cause } = this.failure;
    return new Failure(code, node, state, message, cause);
  }
}

/**
 * The edge that a run takes from a node: the first, in the order they were added, whose predicate returns `true` or
 * that has none.
 */
export function chooseEdge<D extends object>(
  state: State<D>,
  node: GraphNode<D>,
): Edge<D> | NoEdge<D> {
  const { edges } = node;
  let tried = 0;
  try {
    for (const edge of edges) {
      if (edge.predicate === undefined || isTrue(edge, state)) return edge;
      tried++;
    }
  } catch (failure) {
    return new NoEdge(failure as Failure<D>, tried);
  }
  const targets = edges.map((edge) => showTarget(targetOf(edge))).join(", ") || "there is none";
  const problem = `no edge from ${show(node.name)} matches (to: ${targets})`;
  return new NoEdge(new Failure("NO_MATCHING_EDGE", node.name, state, problem), tried);
}

/** The result of an edge's predicate. */
function isTrue<D extends object>(edge: Edge<D>, state: State<D>): boolean {
  let result: unknown;
  try {
    result = edge.predicate?.(state);
  } catch (error) {
    throw predicateFailed(edge, state, `failed: ${messageOf(error)}`, error);
  }
  if (typeof result === "boolean") return result;
  throw predicateFailed(edge, state, `must return true or false; got ${show(result)}`);
}

function predicateFailed<D extends object>(
  edge: Edge<D>,
  state: State<D>,
  problem: string,
  cause?: unknown,
): Failure<D> {
  const way = `from ${show(edge.from)} to ${showTarget(targetOf(edge))}`;
  return new Failure(
    "PREDICATE_FAILED",
    edge.from,
    state,
    `the predicate ${way} ${problem}`,
    cause,
  );
}
