import { type GraphNode, targetOf } from "./node.js";

/**
 * A short hash of a graph's shape: its nodes, entry and exits, each node's edges in order (the first that matches is
 * taken), and the tasks of a dag. Functions are left out: they change with every build.
 */
export function fingerprint<D extends object>(shape: {
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D> | undefined;
  readonly tasks?: ReadonlyMap<string, readonly string[]> | undefined;
}): string {
  const nodes = shape.nodes
    .map((node) => [
      node.name,
      node.exit,
      node.edges.map((edge) => [targetOf(edge), edge.name ?? "", edge.predicate !== undefined]),
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  const tasks = [...(shape.tasks ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  return hash(JSON.stringify([shape.entry?.name ?? "", nodes, ...tasks]));
}

/** A hash of a text, as 16 hexadecimal digits. It detects changes; it is not cryptographic. */
export function hash(text: string): string {
  return fnv(text, 0x811c9dc5) + fnv(text, 0x1000193);
}

/** 32 bits of FNV-1a. */
function fnv(text: string, seed: number): string {
  let value = seed;
  for (let at = 0; at < text.length; at++)
    value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}
