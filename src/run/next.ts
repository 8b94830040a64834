import { messageOf, show } from "../errors.js";
import type { EventSink } from "../events.js";
import { type Edge, type End, type GraphNode, showTarget, targetOf } from "../graph/node.js";
import type { State } from "../state/state.js";
import { Failure } from "./failure.js";

/**
 * The edge that a run takes from a node: the first whose predicate returns `true`, or that has none. `undefined` if
 * there is none, or a predicate fails: {@link nextNode} then throws the reason.
 */
export function chooseEdge<D extends object>(
  state: State<D>,
  { edges }: GraphNode<D>,
): Edge<D> | undefined {
  try {
    for (const edge of edges) if (edge.predicate === undefined || isTrue(edge, state)) return edge;
  } catch {
    return undefined;
  }
  return undefined;
}

/** Emits the events of a chosen edge, and of those before it, which did not match. */
export function emitChoice<D extends object>(
  { runId }: State<D>,
  { edges }: GraphNode<D>,
  chosen: Edge<D>,
  source: string,
  sink: EventSink,
  time: string,
): void {
  if (sink.listens("edge.evaluate")) {
    for (const edge of edges) {
      const { taken, refused } = edge.events;
      sink.emit("edge.evaluate", source, runId, edge === chosen ? taken : refused, time);
      if (edge === chosen) break;
    }
  }
  if (sink.listens("edge.transition"))
    sink.emit("edge.transition", source, runId, chosen.events.transition, time);
}

/** The node that comes after `node`, or the end: its edges are tried in the order they were added. */
export function nextNode<D extends object>(
  state: State<D>,
  node: GraphNode<D>,
  source: string,
  sink?: EventSink,
  time?: string,
): GraphNode<D> | End {
  for (const edge of node.edges) {
    const result = edge.predicate === undefined || isTrue(edge, state);
    const { taken, refused, transition } = edge.events;
    if (sink?.listens("edge.evaluate"))
      sink.emit("edge.evaluate", source, state.runId, result ? taken : refused, time);
    if (!result) continue;
    if (sink?.listens("edge.transition"))
      sink.emit("edge.transition", source, state.runId, transition, time);
    return edge.to;
  }
  const targets =
    node.edges.map((edge) => showTarget(targetOf(edge))).join(", ") || "there is none";
  throw new Failure(
    "NO_MATCHING_EDGE",
    node.name,
    state,
    `no edge from ${show(node.name)} matches (to: ${targets})`,
  );
}

/** The result of an edge's predicate. */
function isTrue<D extends object>(edge: Edge<D>, state: State<D>): boolean {
  let result: unknown;
  try {
    result = edge.predicate?.(state);
  } catch (error) {
    throw new Failure(
      "PREDICATE_FAILED",
      edge.from,
      state,
      `${way(edge)} failed: ${messageOf(error)}`,
      error,
    );
  }
  if (typeof result === "boolean") return result;
  throw new Failure(
    "PREDICATE_FAILED",
    edge.from,
    state,
    `${way(edge)} must return true or false; got ${show(result)}`,
  );
}

function way<D extends object>(edge: Edge<D>): string {
  return `the predicate from ${show(edge.from)} to ${showTarget(targetOf(edge))}`;
}
