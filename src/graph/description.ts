import { isPlainObject } from "../state/shape.js";
import { type Topology, targetOf } from "./topology.js";

/** A graph as data: its nodes and edges, without its code. */
export interface GraphTopology {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** The hash of its nodes and edges. */
  readonly fingerprint: string;
  /** The entry point. */
  readonly entry: string;
  /** The nodes, in the order they were added. */
  readonly nodes: readonly TopologyNode[];
  /** The edges, in the order in which they are tried. */
  readonly edges: readonly TopologyEdge[];
  /** The tasks of a dag, and what each depends on. */
  readonly tasks?: readonly TopologyTask[];
  /** The JSON Schema of its data, if the graph has a schema whose library can produce one. */
  readonly schema?: object;
}

/** A node of a {@link GraphTopology}. */
export interface TopologyNode {
  /** Its name. */
  readonly name: string;
  /** The phase it belongs to; `""` for none. */
  readonly phase: string;
  /** Whether a run may end here. */
  readonly exit: boolean;
  /** The graph that runs inside it, as with `subgraph`. */
  readonly graph?: GraphTopology;
}

/** An edge of a {@link GraphTopology}. */
export interface TopologyEdge {
  /** The node it comes from. */
  readonly from: string;
  /** The node it leads to, or `END`. */
  readonly to: string;
  /** Its name, if it has one. */
  readonly name?: string;
  /** Whether it has a predicate. */
  readonly conditional: boolean;
}

/** A task of a {@link GraphTopology} that is a dag. */
export interface TopologyTask {
  /** Its name. */
  readonly name: string;
  /** The tasks it depends on. */
  readonly dependsOn: readonly string[];
}

/** The differences between two graphs. */
export interface TopologyDifference {
  /** Nodes, or tasks of a dag, that only the newer one has. */
  readonly added: readonly string[];
  /** Nodes, or tasks of a dag, that only the older one has. */
  readonly removed: readonly string[];
  /**
   * Nodes of both whose edges differ, or that became or ceased to be exit points; tasks whose dependencies
   * changed.
   */
  readonly rewired: readonly string[];
}

/** The shape of a graph as data. */
export function shapeOf<D extends object>({
  nodes,
  entry,
  tasks,
}: Topology<D>): Pick<GraphTopology, "entry" | "nodes" | "edges" | "tasks"> {
  return {
    ...(tasks && { tasks: [...tasks].map(([name, dependsOn]) => ({ name, dependsOn })) }),
    entry: entry?.name ?? "",
    nodes: nodes.map(({ name, phase, exit, run }) => {
      const graph = describeInner(innerOf(run));
      return { name, phase, exit, ...(graph && { graph }) };
    }),
    edges: nodes.flatMap((node) =>
      node.edges.map((edge) => ({
        from: node.name,
        to: targetOf(edge),
        ...(edge.name !== undefined && { name: edge.name }),
        conditional: edge.predicate !== undefined,
      })),
    ),
  };
}

type Describe = () => GraphTopology;

/** The graphs that run inside nodes, by the function of the node. */
const inner = new WeakMap<object, Describe>();
/** The descriptions under way: a graph may contain itself. */
const open = new Set<Describe>();

/** Registers the graph that runs inside a node. */
export function setInner(node: object, describe: Describe): void {
  inner.set(node, describe);
}

/** The function that describes the graph inside a node; `undefined` if there is none. */
export function innerOf(node: object): Describe | undefined {
  return inner.get(node);
}

function describeInner(describe: Describe | undefined): GraphTopology | undefined {
  if (describe === undefined || open.has(describe)) return undefined;
  open.add(describe);
  try {
    return describe();
  } finally {
    open.delete(describe);
  }
}

/** What was added, removed and rewired from one graph to another. */
export function compareTopologies(
  before: Pick<GraphTopology, "nodes" | "edges" | "tasks">,
  after: Pick<GraphTopology, "nodes" | "edges" | "tasks">,
): TopologyDifference {
  // The layers of a dag follow from its tasks.
  const [old, now] =
    before.tasks && after.tasks
      ? [needsOf(before.tasks), needsOf(after.tasks)]
      : [linksOf(before), linksOf(after)];
  return {
    added: [...now.keys()].filter((name) => !old.has(name)),
    removed: [...old.keys()].filter((name) => !now.has(name)),
    rewired: [...now].flatMap(([name, links]) =>
      old.has(name) && old.get(name) !== links ? [name] : [],
    ),
  };
}

/** The most nodes that a run can complete; `undefined` if the graph has cycles. */
export function longestPath({ entry, nodes, edges }: GraphTopology): number | undefined {
  const names = new Set(nodes.map(({ name }) => name));
  const next = new Map<string, string[]>();
  for (const { from, to } of edges)
    if (names.has(to)) next.set(from, [...(next.get(from) ?? []), to]);
  const lengths = new Map<string, number | "open">();
  const visit = (name: string): number | undefined => {
    const known = lengths.get(name);
    if (known !== undefined) return known === "open" ? undefined : known;
    lengths.set(name, "open");
    let longest = 0;
    for (const to of next.get(name) ?? []) {
      const length = visit(to);
      if (length === undefined) return undefined;
      longest = Math.max(longest, length);
    }
    lengths.set(name, longest + 1);
    return longest + 1;
  };
  return names.has(entry) ? visit(entry) : undefined;
}

/** Parses a topology; `undefined` if the text is not one. */
export function parseTopology(text: string): GraphTopology | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isPlainObject(value)) return undefined;
    const { name, version, fingerprint, entry, nodes, edges } = value as Record<string, unknown>;
    const isWhole =
      [name, fingerprint, entry].every((one) => typeof one === "string") &&
      typeof version === "number" &&
      isListOf(nodes, "name") &&
      isListOf(edges, "from", "to") &&
      (value.tasks === undefined || isListOf(value.tasks, "name"));
    return isWhole ? (value as unknown as GraphTopology) : undefined;
  } catch {
    return undefined;
  }
}

function isListOf(list: unknown, ...texts: readonly string[]): boolean {
  return (
    Array.isArray(list) &&
    list.every((item) => texts.every((key) => typeof Reflect.get(Object(item), key) === "string"))
  );
}

/** The dependencies of each task, as text for comparison. */
function needsOf(tasks: readonly TopologyTask[]): Map<string, string> {
  return new Map(tasks.map(({ name, dependsOn }) => [name, JSON.stringify([...dependsOn].sort())]));
}

/** The outgoing edges of each node, and whether it is an exit point, as text for comparison. */
function linksOf({ nodes, edges }: Pick<GraphTopology, "nodes" | "edges">): Map<string, string> {
  return new Map(
    nodes.map(({ name, exit }) => {
      const links = edges
        .filter(({ from }) => from === name)
        .map(({ to, name: label = "", conditional }) => [to, label, conditional]);
      return [name, JSON.stringify([exit, links])];
    }),
  );
}
