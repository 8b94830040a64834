import type { CDPSession } from "playwright-core";

/** The parts of V8's heap snapshot format that are read here. */
interface RawSnapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [types: readonly string[], ...rest: unknown[]];
    };
  };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

/** The objects of one class on a heap. */
export interface ClassSize {
  readonly count: number;
  readonly bytes: number;
}

/** What a heap snapshot holds. */
export interface Heap extends ClassSize {
  /** DOM nodes that no document contains. */
  readonly detached: number;
  /** By constructor; strings, code and the like by their kind, in parentheses. */
  readonly classes: ReadonlyMap<string, ClassSize>;
}

/** V8's mark for a node that is in no document. */
const DETACHED = 2;

/** Counts the objects of a heap snapshot by class. */
export function heapOf(text: string): Heap {
  const { snapshot, nodes, strings } = JSON.parse(text) as RawSnapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [kinds] = types;
  const offset = (name: string): number => fields.indexOf(name);
  const [type, name, size, detachedness] = [
    offset("type"),
    offset("name"),
    offset("self_size"),
    offset("detachedness"),
  ];
  const classes = new Map<string, { count: number; bytes: number }>();
  let detached = 0;
  let bytes = 0;
  for (let at = 0; at < nodes.length; at += fields.length) {
    const kind = kinds[nodes[at + type] ?? 0] ?? "";
    const isNamed = kind === "object" || kind === "native";
    const className = isNamed ? (strings[nodes[at + name] ?? 0] ?? "") : `(${kind})`;
    const found = classes.get(className) ?? { count: 0, bytes: 0 };
    const own = nodes[at + size] ?? 0;
    classes.set(className, found);
    found.count++;
    found.bytes += own;
    bytes += own;
    if (nodes[at + detachedness] === DETACHED) detached++;
  }
  return { count: nodes.length / fields.length, bytes, detached, classes };
}

/** A snapshot of the page's heap, after a garbage collection. */
export async function heapOfPage(session: CDPSession): Promise<Heap> {
  const chunks: string[] = [];
  const add = ({ chunk }: { readonly chunk: string }): number => chunks.push(chunk);
  session.on("HeapProfiler.addHeapSnapshotChunk", add);
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
  session.off("HeapProfiler.addHeapSnapshotChunk", add);
  return heapOf(chunks.join(""));
}

/** The classes that have grown between two snapshots, those with the most bytes first. */
export function growth(before: Heap, after: Heap): (ClassSize & { readonly name: string })[] {
  return [...after.classes]
    .map(([name, { count, bytes }]) => {
      const was = before.classes.get(name) ?? { count: 0, bytes: 0 };
      return { name, count: count - was.count, bytes: bytes - was.bytes };
    })
    .filter(({ count, bytes }) => count > 0 || bytes > 0)
    .sort((a, b) => b.bytes - a.bytes);
}
