import type { EventMap, EventType } from "../events.js";
import type { Predicate } from "../state/predicates.js";
import type { Patch, State } from "../state/state.js";

/** What a node gets besides the State. */
export interface NodeContext {
  /** Aborts when the run is cancelled or loses its place to another writer. Pass it on to what you call. */
  readonly signal: AbortSignal;
  /** The run. */
  readonly runId: string;
  /** This node's name. */
  readonly node: string;
  /** How many nodes completed before this one. */
  readonly step: number;
  /** The same for this visit of this node over all retries and resumes: give it to what you pay for. */
  readonly idempotencyKey: string;
  /** Tells those who listen to the graph. */
  emit<T extends EventType>(type: T, data: EventMap[T]): void;
}

/** What a node returns: a State made from the one it was given, or an object to merge into it. */
export type NodeResult<D extends object> = State<D> | Patch<D>;

/** A node: a function from State to State. It may run again after a crash, until its result is saved. */
export type NodeFunction<D extends object> = (
  state: State<D>,
  context: NodeContext,
) => NodeResult<D> | Promise<NodeResult<D>>;

/** A way from one node to another. */
export interface Edge<D extends object> {
  readonly from: string;
  readonly to: GraphNode<D>;
  readonly predicate: Predicate<D> | undefined;
  readonly name: string | undefined;
}

/** A node in its place in the graph. */
export interface GraphNode<D extends object> {
  readonly name: string;
  /** Its place among the nodes, in the order they were added. */
  readonly index: number;
  readonly run: NodeFunction<D>;
  readonly edges: Edge<D>[];
  exit: boolean;
}
