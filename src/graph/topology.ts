import { GraphError, show } from "../errors.js";
import type { Predicate } from "../state/predicates.js";
import type { State } from "../state/state.js";
import { fingerprint } from "./fingerprint.js";
import { END, type GraphNode, type NodeFunction, showTarget } from "./node.js";
import type { InputSchemas } from "./pause.js";
import { validate } from "./validation.js";

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
    if (typeof name !== "string" || name === "" || name === END) {
      throw new GraphError(
        "GRAPH_NODE_NAME",
        `a node's name must be a non-empty string other than ${show(END)}; got ${show(name)}`,
      );
    }
    if (this.#nodes.has(name)) {
      throw new GraphError("GRAPH_NODE_DUPLICATE", `the graph already has a node ${show(name)}`);
    }
    if (typeof run !== "function") {
      throw new GraphError(
        "GRAPH_NODE_FUNCTION",
        `node ${show(name)} must be a function; got ${show(run)}`,
      );
    }
    this.#changed();
    const index = this.#nodes.size;
    this.#nodes.set(name, { name, index, run, edges: [], phase, input, exit: false });
  }

  addEdge(from: string, to: string, predicate?: Predicate<D>, name?: string): void {
    const source = this.node(from, "addEdge");
    const target = to === END ? END : this.node(to, "addEdge");
    if (predicate !== undefined && typeof predicate !== "function") {
      throw new GraphError(
        "GRAPH_PREDICATE",
        `the predicate of the edge from ${show(from)} to ${showTarget(to)} must be a function; got ${show(predicate)}`,
      );
    }
    if (name !== undefined && typeof name !== "string") {
      throw new GraphError(
        "GRAPH_PREDICATE",
        `the name of the edge from ${show(from)} to ${showTarget(to)} must be a string; got ${show(name)}`,
      );
    }
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

  /** Validates the graph and returns its entry point. */
  validate(): GraphNode<D> {
    if (!this.#valid) validate(this);
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
