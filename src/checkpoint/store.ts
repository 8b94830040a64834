import type { ClaimHolder } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { GraphTopology } from "../graph/description.js";
import { type Listed, type ListedWhole, listed } from "../state/fields.js";
import type { Metadata } from "../state/metadata.js";
import type { RunStatus } from "../state/record.js";
import { recordOf, type State } from "../state/state.js";

/** Selects a checkpoint of a run: the newest of a step, or one by its id. The newest of all if neither is given. */
export interface CheckpointAt {
  /** The newest checkpoint with this many completed nodes. */
  readonly step?: number | undefined;
  /** The checkpoint with this id. */
  readonly checkpointId?: string | undefined;
}

/** What a graph passes to its store with each call. */
export interface StoreContext {
  /** Emits an event to the graph's listeners, about a corrupt file for example. */
  readonly emit?: (<T extends EventType>(type: T, data: EventMap[T]) => void) | undefined;
  /** Leaves everything as it is: a corrupt checkpoint is skipped, not set aside. `false` by default. */
  readonly inspect?: boolean | undefined;
}

/** Options of {@link CheckpointStore.save}. */
export interface SaveOptions extends StoreContext {
  /**
   * The number of newest completed steps of the run to keep; at least 2, the store's own setting by default. The newest
   * checkpoint of each kept step stays, and the newest progress save of an unfinished node.
   */
  readonly keep?: number | undefined;
  /** The number of completed steps of each phase to keep in addition; none by default. */
  readonly keepPerPhase?: number | undefined;
}

/** One checkpoint of a run, without its data. */
export interface HistoryEntry extends Listed<"history"> {
  /** The checkpoint it was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** Whether it is a progress save: one made inside a node that had not completed. */
  readonly unfinished: boolean;
  /** Its size in bytes, if the store knows it. */
  readonly bytes?: number;
}

/** A run, as its newest checkpoint describes it. */
export interface RunSummary extends Listed<"runs"> {}

/** Which runs to list. */
export interface RunFilter {
  /** Only this run. */
  readonly runId?: string;
  /** Only runs with this status, or one of these. */
  readonly status?: RunStatus | readonly RunStatus[];
  /** Only runs of the graph with this name. */
  readonly graph?: string;
  /** Only runs last saved before this time, ISO 8601. */
  readonly before?: string;
  /** Only runs whose metadata has all of these values. */
  readonly metadata?: Metadata;
  /** Only runs after this one: the last run of the previous page. */
  readonly cursor?: Pick<RunSummary, "savedAt" | "runId"> | undefined;
  /** The largest number of runs to return, most recently saved first. */
  readonly limit?: number;
}

/** Which runs to remove. Unfinished runs stay unless `includeAbandoned` is set. */
export interface Retention {
  /** Removes runs last saved more than this many days ago. */
  readonly maxAgeDays?: number;
  /** Keeps at most this many finished runs, the most recently saved. */
  readonly maxRuns?: number;
  /** Lets `maxAgeDays` also remove runs that never finished, unless a process works on them; `false` by default. */
  readonly includeAbandoned?: boolean;
  /** Removes nothing, and returns what would be removed. */
  readonly dryRun?: boolean;
}

/** Options of {@link CheckpointStore.claim}. */
export interface ClaimOptions {
  /**
   * How long the claim of a process that died or hangs lasts after its last renewal, in milliseconds, if the store
   * can't see for itself that the process is gone.
   */
  readonly ttl?: number | undefined;
}

export type { ClaimHolder };

/** A process's exclusive hold on a run; see {@link CheckpointStore.claim}. */
export interface Claim {
  /** Increases with each claim of the run, in a store that rejects saves under earlier claims. */
  readonly epoch?: number;
  /** Aborts when another process has taken over the run, in a store where claims can be lost. */
  readonly lost?: AbortSignal;
  /**
   * Whether this process still holds the run, in a store where claims can be lost. Asked before any work
   * begins: it returns synchronously while the claim is known to be valid by a clock that also runs while the
   * process is suspended, and asks the store after that.
   */
  holds?(): boolean | Promise<boolean>;
  /** Releases the run for others to claim. Calling it again does nothing. */
  release(): Promise<void>;
}

/**
 * What can be wrong in a store:
 *
 * - `corrupt`: a checkpoint is not what was written;
 * - `unreadable`: it may be intact, but can't be read here: a key is missing, or it is newer;
 * - `lost`: it depends on a checkpoint that is corrupt or gone;
 * - `gap`: a checkpoint is missing between two others;
 * - `quarantined`: it was found corrupt earlier, and set aside;
 * - `empty`: the run has no intact checkpoint;
 * - `leftover`: a file left by a process that died, which nothing needs;
 * - `database`: the database itself reports damage.
 */
export type Problem =
  | "corrupt"
  | "unreadable"
  | "lost"
  | "gap"
  | "quarantined"
  | "empty"
  | "leftover"
  | "database";

/** Something that {@link CheckpointStore.verify} found. */
export interface Finding {
  /** The run; `""` if it concerns the store as a whole. */
  readonly runId: string;
  /** The checkpoint's position in its run; 0 if it concerns none. */
  readonly sequence: number;
  /** What is wrong. */
  readonly problem: Problem;
  /** What should be there. */
  readonly expected: string;
  /** What is there. */
  readonly actual: string;
}

/** A checkpoint on its way from one store to another. */
export interface ExportedCheckpoint {
  /** The State, with the id and the sequence it was saved as. */
  readonly state: State<object>;
  /** The checkpoint it was made from; see {@link HistoryEntry.parentId}. */
  readonly parentId: string;
}

/**
 * Stores States. Each save is a record of its own, with its own id and a sequence that grows by one; records are never
 * rewritten. `testCheckpointStore` of `waymark/testing` checks everything this interface promises.
 */
export interface CheckpointStore {
  /**
   * Saves a State; it is durable when the promise resolves. Returns the State with its `checkpointId` and `sequence`
   * (see {@link State.savedAs}).
   *
   * @throws CheckpointConflictError if the run is not at the State's sequence.
   * @throws SerializationError if the data can't be stored exactly.
   * @throws ConfigError if the run id or an option is invalid.
   */
  save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>>;
  /**
   * Returns the newest State of a run, or the one selected by `at`.
   *
   * @throws CheckpointNotFoundError if there is none.
   * @throws CheckpointCorruptionError if it is there but not as it was saved.
   * @throws SerializationError if it holds something that this store can't read.
   * @throws ConfigError if the run id or an option is invalid.
   */
  load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>>;
  /**
   * Removes a run and its history. Does nothing if there is no such run.
   *
   * @throws ConfigError if the run id or an option is invalid.
   */
  delete(runId: string): Promise<void>;
  /**
   * The ids of all runs.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   */
  list(): Promise<string[]>;
  /**
   * The run that a checkpoint belongs to; `undefined` if the store has no such checkpoint.
   *
   * @throws ConfigError if the id is not a string.
   */
  find?(checkpointId: string): Promise<string | undefined>;
  /**
   * The checkpoints of a run, newest first; none for an unknown run.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  history?(runId: string): Promise<HistoryEntry[]>;
  /**
   * The runs that match a filter, most recently saved first.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  runs?(filter?: RunFilter): Promise<RunSummary[]>;
  /**
   * The ids of the runs that {@link CheckpointStore.runs} leaves out because nothing of them can be read; see
   * {@link CheckpointStore.verify}.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   */
  unreadable?(): Promise<string[]>;
  /**
   * Removes old runs; returns the ids of those it removed, or would remove.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  prune?(retention: Retention): Promise<string[]>;
  /**
   * Claims a run for this process; `undefined` if a live process, this or another, already holds it. The claim ends
   * when it is released or the process dies. A claim does not stop others from saving: a second writer fails with a
   * conflict.
   *
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  claim?(runId: string, options?: ClaimOptions): Promise<Claim | undefined>;
  /**
   * Who holds a run; `undefined` if nobody does.
   *
   * @throws ConfigError if the run id is invalid.
   */
  holder?(runId: string): Promise<ClaimHolder | undefined>;
  /**
   * Reads every checkpoint of a run, or of all runs, and yields what is wrong. Changes nothing.
   *
   * @throws ConfigError if the run id is invalid.
   */
  verify?(runId?: string): AsyncIterable<Finding>;
  /**
   * The checkpoints of a run, oldest first, for another store's `import`; none for an unknown run.
   *
   * @throws CheckpointCorruptionError if one is not as it was saved.
   * @throws SerializationError if one holds something that this store can't read.
   * @throws ConfigError if the run id or an option is invalid.
   */
  export?(runId: string): AsyncIterable<ExportedCheckpoint>;
  /**
   * Imports the checkpoints of a run that this store does not have, oldest first, each with its own id and sequence.
   * All are kept until the run's next save.
   *
   * @throws CheckpointConflictError if the run exists already, or the sequences do not increase.
   * @throws CheckpointCorruptionError if something else is in the place where the store keeps its records.
   * @throws SerializationError if one can't be stored exactly.
   * @throws ConfigError if the run id or an option is invalid.
   */
  import?(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void>;
  /** Saves the topology of a graph, once per fingerprint, so that its runs can be drawn without its code. */
  saveTopology?(topology: GraphTopology): Promise<void>;
  /** The topology of the graph with this fingerprint; `undefined` if the store does not have it. */
  topology?(fingerprint: string): Promise<GraphTopology | undefined>;
  /** Closes files and connections. */
  close?(): Promise<void>;
  /**
   * Opens a store that is opened on first use, such as one named by an address, and resolves to the store itself. Only
   * that one tells by its methods what it can do. Absent in a store that is open.
   */
  open?(): Promise<CheckpointStore>;
}

/** Whether a store must have a method, and how an optional one answers. */
type MethodKind<M> = undefined extends M
  ? M extends ((...args: never[]) => AsyncIterable<unknown>) | undefined
    ? "optional stream"
    : "optional"
  : "required";

/** The methods of a store. Wrappers follow from it: a method that is missing here does not compile. */
export const storeMethods: {
  readonly [K in keyof Required<CheckpointStore>]: MethodKind<CheckpointStore[K]>;
} = {
  save: "required",
  load: "required",
  delete: "required",
  list: "required",
  find: "optional",
  history: "optional",
  runs: "optional",
  unreadable: "optional",
  prune: "optional",
  claim: "optional",
  holder: "optional",
  verify: "optional stream",
  export: "optional stream",
  import: "optional",
  saveTopology: "optional",
  topology: "optional",
  close: "optional",
  open: "optional",
};

/** Whether a value has the four methods every store has. */
export function isCheckpointStore(value: unknown): value is CheckpointStore {
  return (
    typeof value === "object" &&
    value !== null &&
    Object.entries(storeMethods).every(
      ([name, kind]) => kind !== "required" || typeof Reflect.get(value, name) === "function",
    )
  );
}

/** A method of a store, whichever it is. */
type Method = (...args: readonly unknown[]) => unknown;

/** The names of all methods but `open`, which a wrapper of a store that opens on first use has to answer itself. */
export const methodNames = Object.keys(storeMethods).filter(
  (name): name is keyof Overrides => name !== "open",
);

/** Those methods of a type of store that the contract has. */
export type Wrapped<S extends CheckpointStore> = Pick<S, Extract<keyof S, keyof CheckpointStore>>;

/** For methods that a wrapper changes: given the method of the store behind it, returns its own. */
export type Overrides = {
  readonly [K in Exclude<keyof CheckpointStore, "open">]?: (
    next: Required<CheckpointStore>[K],
  ) => Required<CheckpointStore>[K];
};

/**
 * Wraps a store: the wrapper has the same methods of the contract, no more and no fewer, and forwards all but a few.
 *
 * @param own - methods of the wrapper itself.
 */
export function wrap<S extends CheckpointStore, O extends object = object>(
  store: S,
  overrides: Overrides,
  own?: O,
): Wrapped<S> & O {
  const wrapped: Record<string, unknown> = {};
  for (const name of methodNames) {
    if (!(name in store) || store[name] === undefined) continue;
    const next: Method = (...args) => (store[name] as Method)(...args);
    const override = overrides[name] as ((next: Method) => Method) | undefined;
    wrapped[name] = override?.(next) ?? next;
  }
  if ("open" in store && store.open !== undefined) {
    wrapped.open = async () => wrap(await opened(store), overrides, own);
  }
  return Object.assign(wrapped, own) as Wrapped<S> & O;
}

/** The store itself, whose methods tell what it can do: to be used before a store is asked for an optional method. */
export function opened<S extends CheckpointStore | undefined>(
  store: S,
): S | Promise<CheckpointStore> {
  return store === undefined || !("open" in store) || store.open === undefined
    ? store
    : store.open();
}

/** The claim of a run in a store without claims, where everybody has it: of two writers, one gets a conflict. */
export const unclaimed: Claim = { release: async () => {} };

/** Claims a run as the store's `claim` does, if it has one; `undefined` if a live process holds the run. */
export async function claimIfAble(
  store: CheckpointStore,
  runId: string,
  options?: ClaimOptions,
): Promise<Claim | undefined> {
  return store.claim === undefined ? unclaimed : store.claim(runId, options);
}

/** Whether the newest checkpoint was asked for. */
export function isNewest({ step, checkpointId }: CheckpointAt): boolean {
  return step === undefined && checkpointId === undefined;
}

/** Whether a checkpoint is the one that was asked for. */
export function isAt(at: CheckpointAt, entry: { step: number; checkpointId: string }): boolean {
  return (
    (at.step === undefined || at.step === entry.step) &&
    (at.checkpointId === undefined || at.checkpointId === entry.checkpointId)
  );
}

/** The fields of a State other than its data; see {@link State} for each. */
export interface Checkpoint extends ListedWhole {
  /** Its size in bytes, if the store knows it. */
  readonly bytes?: number | undefined;
}

/** The size of a record above which a store warns, unless `warnBytes` sets another. */
export const DEFAULT_WARN_BYTES = 500 * 1024;

/** The warning about a checkpoint that is too large; `undefined` if it is not. */
export function sizeWarning(
  { bytes = 0 }: Pick<Checkpoint, "bytes">,
  warnBytes = DEFAULT_WARN_BYTES,
): string | undefined {
  if (bytes <= warnBytes) return undefined;
  return `the checkpoint has ${bytes} bytes, more than warnBytes (${warnBytes})`;
}

/** Summarizes a run from its newest State. */
export function summarize<D extends object>(state: State<D>): RunSummary {
  return listed(recordOf(state), "runs", {});
}

/** The history entry of a saved State. */
export function entryOf<D extends object>(
  state: State<D>,
  parentId: string,
  unfinished: boolean,
): HistoryEntry {
  const record = recordOf(state);
  const { bytes } = record.saved;
  return {
    ...listed(record, "history", {}),
    parentId,
    unfinished,
    ...(bytes !== undefined && { bytes }),
  };
}
