import type { GraphNode } from "./node.js";

/**
 * A short hash of a graph's shape: its nodes, entry and exits, and each node's edges in their order,
 * which decides the way. Functions are not in it: they change with every build.
 */
export function fingerprint<D extends object>(shape: {
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D> | undefined;
}): string {
  const nodes = shape.nodes
    .map((node) => [
      node.name,
      node.exit,
      node.edges.map((edge) => [edge.to.name, edge.name ?? "", edge.predicate !== undefined]),
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  const text = JSON.stringify([shape.entry?.name ?? "", nodes]);
  return hash(text, 0x811c9dc5) + hash(text, 0x1000193);
}

/** 32 bits of FNV-1a; it finds changes, it keeps nobody out. */
function hash(text: string, seed: number): string {
  let value = seed;
  for (let at = 0; at < text.length; at++)
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
