import { GraphError, type GraphErrorCode, show } from "../errors.js";
import { callable, check, type Refuse, string } from "../options.js";
import type { Predicate } from "../state/predicates.js";
import type { State } from "../state/state.js";
import { type Edge, END, type GraphNode, type NodeFunction } from "./node.js";
import type { InputSchemas } from "./pause.js";

const nodeName = check(
  `a non-empty string other than "${END}"`,
  (value) => typeof value === "string" && value !== "" && value !== END,
);

/** Throws a GraphError with a code. */
function refuseWith(code: GraphErrorCode): Refuse {
  return (name, problem) => {
    throw new GraphError(code, `${name} ${problem}`);
  };
}

/** The nodes and edges of a graph. It runs nothing. */
export class Topology<D extends object> {
  readonly #nodes = new Map<string, GraphNode<D>>();
  /**
   * Finds where a run continues, in a graph where the last node alone does not determine it; `undefined` at its end.
   */
  locate: ((state: State<D>) => string | undefined) | undefined;
  /** The dependencies of the tasks inside the nodes, if the nodes are layers of a dag. */
  tasks: ReadonlyMap<string, readonly string[]> | undefined;
  #entry: GraphNode<D> | undefined;
  #valid = false;
  #fingerprint: string | undefined;

  get nodes(): readonly GraphNode<D>[] {
    return [...this.#nodes.values()];
  }

  get entry(): GraphNode<D> | undefined {
    return this.#entry;
  }

  get fingerprint(): string {
    this.#fingerprint ??= fingerprint(this);
    return this.#fingerprint;
  }

  addNode(
    name: string,
    run: NodeFunction<D>,
    { phase = "", input }: { readonly phase?: string; readonly input?: InputSchemas } = {},
  ): void {
    nodeName("a node's name", name, refuseWith("GRAPH_NODE_NAME"));
    if (this.#nodes.has(name)) {
      throw new GraphError("GRAPH_NODE_DUPLICATE", `the graph already has a node ${show(name)}`);
    }
    callable(`node ${show(name)}`, run, refuseWith("GRAPH_NODE_FUNCTION"));
    this.#changed();
    this.#nodes.set(name, { name, run, edges: [], phase, input, exit: false });
  }

  addEdge(from: string, to: string, predicate?: Predicate<D>, name?: string): void {
    const source = this.node(from, "addEdge");
    const target = to === END ? END : this.node(to, "addEdge");
    const edge = `the edge from ${show(from)} to ${showTarget(to)}`;
    const refuse = refuseWith("GRAPH_PREDICATE");
    if (predicate !== undefined) callable(`the predicate of ${edge}`, predicate, refuse);
    if (name !== undefined) string(`the name of ${edge}`, name, refuse);
    this.#changed();
    const transition = Object.freeze({ from, to, ...(name !== undefined && { name }) });
    const taken = Object.freeze({ ...transition, result: true });
    const refused = Object.freeze({ ...transition, result: false });
    const events = { transition, taken, refused };
    source.edges.push({ from, to: target, predicate, name, events });
  }

  setEntryPoint(name: string): void {
    const node = this.node(name, "setEntryPoint");
    if (this.#entry !== undefined) {
      throw new GraphError(
        "GRAPH_ENTRY_DUPLICATE",
        `the entry point is already ${show(this.#entry.name)}; a graph has only one`,
      );
    }
    this.#changed();
    this.#entry = node;
  }

  setExitPoint(name: string): void {
    const node = this.node(name, "setExitPoint");
    this.#changed();
    node.exit = true;
  }

  /**
   * The entry point of a graph that can run to its end.
   *
   * @throws GraphError listing all problems; its code is that of the first.
   */
  validate(): GraphNode<D> {
    const problems = this.#valid ? [] : [...findProblems(this)];
    const [first] = problems;
    if (first !== undefined)
      throw new GraphError(first[0], problems.map(([, problem]) => problem).join("; "));
    this.#valid = true;
    return this.#entry as GraphNode<D>;
  }

  /** The node with a name, if there is one. */
  find(name: string): GraphNode<D> | undefined {
    return this.#nodes.get(name);
  }

  node(name: string, asker: string): GraphNode<D> {
    if (name === "")
      throw new GraphError("GRAPH_NODE_NAME", `${asker}: a node's name must not be empty`);
    const node = this.#nodes.get(name);
    if (node !== undefined) return node;
    const names = [...this.#nodes.keys()].map(show).join(", ") || "none yet";
    throw new GraphError(
      "GRAPH_NODE_UNKNOWN",
      `${asker}: there is no node ${show(name)}; the nodes are: ${names}`,
    );
  }

  #changed(): void {
    this.#valid = false;
    this.#fingerprint = undefined;
  }
}

function* findProblems<D extends object>({
  nodes,
  entry,
}: Topology<D>): Generator<[GraphErrorCode, string]> {
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

/**
 * A short hash of a graph's shape: its nodes, entry and exits, each node's edges in order (the first that matches is
 * taken), and the tasks of a dag. Functions are left out: they change with every build.
 */
function fingerprint<D extends object>(graph: Topology<D>): string {
  const nodes = graph.nodes
    .map((node) => [
      node.name,
      node.exit,
      node.edges.map((edge) => [targetOf(edge), edge.name ?? "", edge.predicate !== undefined]),
    ])
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  const tasks = [...(graph.tasks ?? [])].sort(([a], [b]) => (a < b ? -1 : 1));
  return hash(JSON.stringify([graph.entry?.name ?? "", nodes, ...tasks]));
}

/** The name of a target, for messages. */
export function showTarget(name: string): string {
  return name === END ? "END" : show(name);
}

/** The name of the node that an edge leads to, or {@link END}. */
export function targetOf<D extends object>({ to }: Edge<D>): string {
  return to === END ? END : to.name;
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
