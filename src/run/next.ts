import { show } from "../errors.js";
import type { EventSink } from "../events.js";
import type { Edge, GraphNode } from "../graph/node.js";
import type { State } from "../state/state.js";
import { Failure, messageOf } from "./failure.js";

/** The node that comes after `node`: its edges are tried in the order they were added. */
export function nextNode<D extends object>(
  state: State<D>,
  node: GraphNode<D>,
  source: string,
  sink?: EventSink,
  time?: string,
): GraphNode<D> {
  for (const edge of node.edges) {
    if (!takes(state, edge, source, sink, time)) continue;
    if (sink?.listens("edge.transition"))
      sink.emit("edge.transition", source, state.runId, edge.events.transition, time);
    return edge.to;
  }
  const targets = node.edges.map((edge) => show(edge.to.name)).join(", ") || "there is none";
  throw new Failure(
    "NO_MATCHING_EDGE",
    node.name,
    state,
    `no edge from ${show(node.name)} matches (to: ${targets})`,
  );
}

function takes<D extends object>(
  state: State<D>,
  edge: Edge<D>,
  source: string,
  sink: EventSink | undefined,
  time: string | undefined,
): boolean {
  const { predicate, events } = edge;
  let result: unknown = true;
  try {
    if (predicate !== undefined) result = predicate(state);
  } catch (error) {
    throw new Failure(
      "PREDICATE_FAILED",
      edge.from,
      state,
      `${way(edge)} failed: ${messageOf(error)}`,
      error,
    );
  }
  if (typeof result !== "boolean") {
    throw new Failure(
      "PREDICATE_FAILED",
      edge.from,
      state,
      `${way(edge)} wants to return true or false, got ${show(result)}`,
    );
  }
  if (sink?.listens("edge.evaluate"))
    sink.emit("edge.evaluate", source, state.runId, result ? events.taken : events.refused, time);
  return result;
}

function way<D extends object>(edge: Edge<D>): string {
  return `the predicate from ${show(edge.from)} to ${show(edge.to.name)}`;
}
