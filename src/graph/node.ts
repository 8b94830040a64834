import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { Agent, Decision, Origin } from "../state/ledger/entries.js";
import type { Usage } from "../state/ledger/usage.js";
import type { Ledger } from "../state/ledger.js";
import type { Predicate } from "../state/predicates.js";
import type { Patch, State } from "../state/state.js";
import type { Pause, PauseOptions } from "./pause.js";

/** What a node gets besides the State. */
export interface NodeContext<D extends object = object> {
  /** Aborts when the run is cancelled, the attempt takes too long, or another writer takes the run. Pass it on to what you call. */
  readonly signal: AbortSignal;
  /** Aborts when the graph drains: a long node may stop at a good place, save and throw its reason. */
  readonly draining: AbortSignal;
  /** The run. */
  readonly runId: string;
  /** This node's name. */
  readonly node: string;
  /** How many nodes completed before this one. */
  readonly step: number;
  /** Which attempt this is, from 1 up. */
  readonly attempt: number;
  /** The same for this visit of this node over all retries and resumes: give it to what you pay for. */
  readonly idempotencyKey: string;
  /**
   * Does something once in this visit of the node, whatever happens: its result is saved before it is
   * returned, and a retry or a resume gets that result without doing it again. Those who ask for the
   * same key at the same time share one call. What throws is done again.
   *
   * @throws SerializationError that names the key, when the result can't be saved.
   */
  once<T>(key: string, action: () => T | Promise<T>): Promise<T>;
  /** What was remembered under a key by this visit of the node; `undefined` if nothing was. */
  recall(key: string): unknown;
  /**
   * Saves a value that a retry or a resume of this visit can recall. Values that come in while a save is under way are
   * saved together. An attempt that was given up is refused: the next one may have saved something newer.
   */
  remember(key: string, value: unknown): Promise<void>;
  /** Lets go of what was remembered under a key; the next save is without it. */
  forget(key: string): void;
  /**
   * Saves a milestone inside the node: a retry or a resume runs the node again from this State. Go on from
   * the State that it gives; an object that the node returns is merged into the last milestone.
   */
  checkpoint(state: State<D>, reason: string): Promise<State<D>>;
  /**
   * Pauses the run inside the node, unless this pause was answered: then it gives the answer. On
   * `resume` the node runs again up to here, so do what is dear with {@link NodeContext.once}. Names keep
   * several pauses apart, also at the same time: all that pause by one name, the items of a list too, share one
   * question and its answer. It throws to stop the node; catching that changes nothing.
   */
  pause(name: string, options: PauseOptions): Promise<unknown>;
  /**
   * Waits so many milliseconds from the first call with this name in this visit, over retries and
   * resumes: a process that dies meanwhile has nothing to wait for again. A worker lets the run go
   * meanwhile, as a pause does, unless the wait is short.
   */
  sleep(name: string, ms: number): Promise<void>;
  /** Writes down what this run uses, decides and makes; it is saved with the State. */
  readonly ledger: LedgerWriter;
  /** Tells listeners that a part is finished, for a report that grows with the run. */
  progress(part: ProgressPart): void;
  /** Tells those who listen to the graph. */
  emit<T extends EventType>(type: T, data: EventMap[T]): void;
}

/** A finished part of what a run makes. */
export interface ProgressPart {
  /** Its heading. */
  readonly title: string;
  /** What was found or made. */
  readonly summary: string;
  /** Where it is from. */
  readonly sources?: readonly string[];
}

/** What a node writes into the run's ledger. */
export interface LedgerWriter {
  /** Adds tokens, cost and other counters to the totals of the run and of this node. */
  usage(usage: Usage): void;
  /** Adds a decision, and tells listeners of it. */
  decision(decision: Omit<Decision, keyof Origin>): void;
  /** Says what is known of an agent; what is not given stays. */
  agent(id: string, agent: Omit<Agent, keyof Origin>): void;
  /** Says where something is that the run made. */
  output(name: string, ref: unknown): void;
  /** Adds what another ledger got since it was `base`: that of a run inside this node. */
  merge(base: Ledger, other: Ledger): void;
}

/** What a node returns: a State made from the one it was given, an object to merge into it, or a {@link pause}. */
export type NodeResult<D extends object> = State<D> | Patch<D> | Pause<D>;

/** A node: a function from State to State. It may run again after a crash, until its result is saved. */
export type NodeFunction<D extends object> = (
  state: State<D>,
  context: NodeContext<D>,
) => NodeResult<D> | Promise<NodeResult<D>>;

/** A way from one node to another. */
export interface Edge<D extends object> {
  readonly from: string;
  readonly to: GraphNode<D>;
  readonly predicate: Predicate<D> | undefined;
  readonly name: string | undefined;
  /** What its events carry; made once, because a run may pass here a million times. */
  readonly events: {
    readonly transition: EventMap["edge.transition"];
    readonly taken: EventMap["edge.evaluate"];
    readonly refused: EventMap["edge.evaluate"];
  };
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
