import { GraphError, type GraphErrorCode, show } from "../errors.js";
import { END, type GraphNode } from "./node.js";

interface Shape<D extends object> {
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D> | undefined;
}

/**
 * Rejects a graph that can't run to its end. The message lists all problems; the code is that of the first.
 *
 * @throws GraphError
 */
export function validate<D extends object>(shape: Shape<D>): void {
  const problems: [GraphErrorCode, string][] = [...findProblems(shape)];
  const first = problems[0];
  if (first === undefined) return;
  throw new GraphError(first[0], problems.map(([, problem]) => problem).join("; "));
}

function* findProblems<D extends object>({
  nodes,
  entry,
}: Shape<D>): Generator<[GraphErrorCode, string]> {
  if (nodes.length === 0) return yield ["GRAPH_NO_NODES", "the graph has no nodes: call addNode"];
  if (entry === undefined)
    yield ["GRAPH_NO_ENTRY", "the graph has no entry point: call setEntryPoint"];
  if (!nodes.some((node) => node.exit || node.edges.some(({ to }) => to === END)))
    yield ["GRAPH_NO_EXIT", "the graph never ends: call setExitPoint, or add an edge to END"];
  const reached = entry === undefined ? new Set(nodes) : reachable(entry);
  for (const node of nodes) {
    if (!reached.has(node)) {
      yield [
        "GRAPH_NODE_UNREACHABLE",
        `node ${show(node.name)} can't be reached from the entry point: add an edge to it`,
      ];
    }
    if (!node.exit && node.edges.length === 0) {
      yield [
        "GRAPH_NODE_DEAD_END",
        `node ${show(node.name)} has no outgoing edge and is not an exit point`,
      ];
    }
  }
}

function reachable<D extends object>(entry: GraphNode<D>): Set<GraphNode<D>> {
  const reached = new Set([entry]);
  // Iterating over a Set also visits what is added meanwhile.
  for (const node of reached) for (const { to } of node.edges) if (to !== END) reached.add(to);
  return reached;
}
