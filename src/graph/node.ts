import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { AgentUpdate, Decision, Ledger, Origin, UsageCall } from "../state/ledger.js";
import type { Predicate } from "../state/predicates.js";
import type { Patch, State } from "../state/state.js";
import type { InputSchemas, Pause, PauseOptions, SchemaPauseOptions } from "./pause.js";

/** What a node receives besides the State. */
export interface NodeContext<D extends object = object> {
  /**
   * Aborts when the run is cancelled, the attempt times out, or another writer takes the run. Pass it to what you
   * call.
   */
  readonly signal: AbortSignal;
  /**
   * Aborts when the graph drains: a long node may stop at a convenient place, save, and throw the signal's
   * reason.
   */
  readonly draining: AbortSignal;
  /** The id of the run. */
  readonly runId: string;
  /** This node's name. */
  readonly node: string;
  /** How many nodes completed before this one. */
  readonly step: number;
  /** The number of this attempt, starting at 1. */
  readonly attempt: number;
  /** The same across all retries and resumes of this visit to the node: pass it to services that accept one. */
  readonly idempotencyKey: string;
  /**
   * Runs an action once per visit to the node: its result is saved before it is returned, and a retry or a resume
   * gets that result without running the action again. Concurrent calls with the same key share one execution. An
   * action that throws is called again.
   *
   * @throws SerializationError, naming the key, if the result can't be saved.
   * @throws ConfigError, naming the keys, if the action awaits a call with its own key, directly or through others,
   * and so would wait for itself. Browsers and Bun can't tell: it waits.
   */
  once<T>(key: string, action: () => T | Promise<T>): Promise<T>;
  /** The value remembered under a key in this visit to the node; `undefined` if there is none. */
  recall(key: string): unknown;
  /**
   * Saves a value that a retry or a resume of this visit can recall. Values that arrive while a save is under way
   * are saved together. Calls from an abandoned attempt are rejected: the next attempt may have saved something
   * newer.
   */
  remember(key: string, value: unknown): Promise<void>;
  /** Forgets what was remembered under a key; the next save omits it. */
  forget(key: string): void;
  /**
   * Saves a milestone inside the node: a retry or a resume runs the node again from this State. Continue from
   * the State it returns; an object that the node returns is merged into the last milestone.
   */
  checkpoint(state: State<D>, reason: string): Promise<State<D>>;
  /**
   * Pauses the run inside the node, unless this pause has been answered; then it returns the answer. On `resume` the
   * node runs again up to here, so wrap expensive work in {@link NodeContext.once}. Names distinguish several
   * pauses, even concurrent ones: all pauses with the same name, including those of list items, share one question
   * and its answer. It throws to stop the node; catching that changes nothing. A `schema` checks the answer and
   * gives it its type.
   *
   * @throws PauseTimeoutError if `timeout` has passed since the pause was first asked. A node may catch it.
   */
  pause<T>(name: string, options: SchemaPauseOptions<T>): Promise<T>;
  /** The same without a schema: the answer can be anything. */
  pause(name: string, options: PauseOptions): Promise<unknown>;
  /**
   * Waits this many milliseconds from the first call with this name in this visit, across retries and resumes: after
   * a crash it waits only for the remaining time. A worker releases the run in the meantime, as for a pause, unless
   * the wait is short.
   */
  sleep(name: string, ms: number): Promise<void>;
  /** Records what this run uses, decides and produces; it is saved with the State. */
  readonly ledger: LedgerWriter;
  /** Reports a finished part, for a report that grows with the run. */
  progress(part: ProgressPart): void;
  /** Emits an event to the listeners of the graph. */
  emit<T extends EventType>(type: T, data: EventMap[T]): void;
}

/**
 * When the results of items are saved: `"item"` as they come in, sharing a save if one is under way; `"layer"`
 * when all are done, with the node; a number *n*, after every *n* items. In any case, a node that fails, pauses
 * or is stopped keeps its results.
 */
export type Saves = "item" | "layer" | number;

/** When and how often a failed node is retried. */
export interface RetryPolicy {
  /** The total number of attempts; 3 by default, `Infinity` allowed. */
  readonly maxAttempts?: number;
  /**
   * The delay before the second attempt, in milliseconds; 1000 by default. Each delay is shortened by up to half at
   * random.
   */
  readonly initialInterval?: number;
  /** The factor by which each delay grows; 2 by default, at least 1. */
  readonly backoff?: number;
  /** The longest delay, in milliseconds; 60,000 by default. */
  readonly maxInterval?: number;
  /** Whether to retry after this error; by default after all but a FatalError. */
  readonly retryIf?: (error: unknown, attempt: number) => boolean;
}

/** A finished part of a run's output. */
export interface ProgressPart {
  /** Its heading. */
  readonly title: string;
  /** What was found or made. */
  readonly summary: string;
  /** Where it comes from. */
  readonly sources?: readonly string[];
}

/** What a node writes into the run's ledger. */
export interface LedgerWriter {
  /** Adds tokens, cost and custom counters to the totals of the run and of this node, and emits `usage`. */
  usage(usage: UsageCall): void;
  /** Adds a decision, and emits it. */
  decision(decision: Omit<Decision, keyof Origin>): void;
  /** Records what is known about an agent; omitted fields keep their value. */
  agent(id: string, agent: AgentUpdate): void;
  /** Records where an output of the run is. */
  output(name: string, ref: unknown): void;
  /** Adds what another ledger, that of a run inside this node, has gained since `base`. */
  merge(base: Ledger, other: Ledger): void;
}

/** What a node returns: a State made from the one it was given, an object to merge into it, or a {@link pause}. */
export type NodeResult<D extends object> = State<D> | Patch<D> | Pause<D>;

/**
 * A node: a function from State to State. It may run again after a crash, until its result is saved.
 *
 * If a returned object has an unknown key beside a known one, the compiler reports it in a function passed to
 * `addNode`, but not in one declared with this type: declare its result as a {@link Patch} instead.
 */
export type NodeFunction<D extends object, R = NodeResult<D> | Promise<NodeResult<D>>> = (
  state: State<D>,
  context: NodeContext<D>,
) => R;

/**
 * Anything that a function can return; {@link CheckedResult} then rejects what it must not, with a message. The
 * first members give literals in the result their types.
 */
export type AnyResult<D extends object> =
  // biome-ignore lint/complexity/noBannedTypes: it makes the union accept types that are not inferred yet
  NodeResult<D> | Promise<NodeResult<D>> | {} | null | undefined;

/**
 * The result itself if its objects have only keys of the data, with values of the right types; otherwise a message.
 * TypeScript itself reports an unknown key only if there is no known one beside it.
 *
 * Used as the return type of a function argument, because there the compiler infers `R` and still knows the types of
 * the function's parameters.
 */
export type CheckedResult<D extends object, R, Allowed = NodeResult<D> | Promise<NodeResult<D>>> = [
  R,
  ReturnedKeys<D, R>,
] extends [Allowed, keyof D]
  ? R
  : NoInfer<Problem<D, R, Allowed>>;

/** The keys of the returned objects, directly or in a promise. */
type ReturnedKeys<D extends object, R> =
  R extends PromiseLike<infer A> ? NamedKeys<D, A> : NamedKeys<D, R>;

/** The keys of an object to merge; none if it has an index signature. */
type NamedKeys<D extends object, R> = R extends State<D> | Pause<D>
  ? never
  : string extends keyof R
    ? never
    : keyof R;

/** What is wrong with a result: a message, or the type that it must have. */
type Problem<D extends object, R, Allowed> =
  R extends PromiseLike<infer A>
    ? Promise<never> extends Allowed
      ? Problem<D, A, Awaited<Allowed>>
      : "must not be a promise"
    : [ObjectProblem<D, R>] extends [never]
      ? R extends Allowed
        ? never
        : Exclude<Allowed, PromiseLike<unknown>>
      : ObjectProblem<D, R>;

/**
 * What is wrong with the keys of an object; nothing for a State, a Pause or an array. Nothing either if the type
 * accepts any patch, which saves the compiler from checking each key of large data.
 */
type ObjectProblem<D extends object, R> = R extends State<D> | Pause<object> | readonly unknown[]
  ? never
  : R extends State<object>
    ? "must be built on the State that is given"
    : Patch<D> extends R
      ? never
      : R extends object
        ? {
            [K in keyof R]-?: K extends keyof D
              ? Pick<R, K> extends Patch<D>
                ? never
                : `"${K & string}" must be ${Shown<Required<D>[K]>}`
              : `"${K & string}" is not a key of the data`;
          }[keyof R]
        : never;

/** A type in a form that a message can contain. */
type Shown<T> = [T] extends [string | number | bigint | boolean | null | undefined]
  ? T
  : "of its type in the data";

/**
 * The target of an edge that ends the run.
 *
 * @example
 * ```ts
 * import { END, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ score: number }>()
 *   .addNode("review", (state) => ({ score: state.data.score + 1 }))
 *   .addEdge("review", "review", (state) => state.data.score < 3)
 *   .addEdge("review", END)
 *   .setEntryPoint("review");
 * console.log((await graph.execute(State.create({ score: 0 }))).data.score); // 3
 * ```
 */
export const END = "__end__";

/** The type of {@link END}. */
export type End = typeof END;

/** An edge from one node to another, or to the end. */
export interface Edge<D extends object> {
  readonly from: string;
  readonly to: GraphNode<D> | End;
  readonly predicate: Predicate<D> | undefined;
  readonly name: string | undefined;
  /** The data of its events; made once, because a run may take the edge a million times. */
  readonly events: {
    readonly transition: EventMap["edge.transition"];
    readonly taken: EventMap["edge.evaluate"];
    readonly refused: EventMap["edge.evaluate"];
  };
}

/** A node of a graph, with its outgoing edges. */
export interface GraphNode<D extends object> {
  readonly name: string;
  readonly run: NodeFunction<D>;
  readonly edges: Edge<D>[];
  /** The phase it belongs to; `""` for none. */
  readonly phase: string;
  /** Checks the input of its pauses. */
  readonly input: InputSchemas | undefined;
  exit: boolean;
}
