import { CheckpointNotFoundError, wordsOf } from "../errors/checkpoint.js";
import type { RunHolder } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { GraphTopology } from "../graph/description.js";
import type { GraphIdentity, Metadata, RunError, RunStatus } from "../state/record.js";
import type { State } from "../state/state.js";

/** Which checkpoint of a run: the newest of a step, or one by its id. Neither means the newest of all. */
export interface CheckpointAt {
  /** The newest checkpoint with this many completed nodes. */
  readonly step?: number | undefined;
  /** This very checkpoint. */
  readonly checkpointId?: string | undefined;
}

/** What a graph gives its store with each call. */
export interface StoreContext {
  /** Emits an event to the graph's listeners, of a corrupt file for example. */
  readonly emit?: (<T extends EventType>(type: T, data: EventMap[T]) => void) | undefined;
  /** Only look: a corrupt checkpoint is passed over, and left where it is. False by default. */
  readonly inspect?: boolean | undefined;
}

/** How a State is saved. */
export interface SaveOptions extends StoreContext {
  /**
   * How many completed steps of the run to keep, the newest; at least 2, the store's own setting by
   * default. Of each kept step the newest checkpoint stays, and of an unfinished node its newest
   * progress save.
   */
  readonly keep?: number | undefined;
  /** How many completed steps of each phase to keep beside those; none by default. */
  readonly keepPerPhase?: number | undefined;
}

/** One checkpoint of a run, without its data. */
export interface HistoryEntry {
  /** Its place in the run's history, from 1 up. */
  readonly sequence: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** The last of them; `""` before the first. */
  readonly node: string;
  /** The phase of that node; `""` for none. */
  readonly phase: string;
  /** What the run was doing. */
  readonly status: RunStatus;
  /** When that node completed, ISO 8601. */
  readonly timestamp: string;
  /** When the checkpoint was saved, ISO 8601. */
  readonly savedAt: string;
  /** Its id. */
  readonly checkpointId: string;
  /** The checkpoint it was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** Why it was saved. */
  readonly reason: string;
  /** Whether it is a progress save: one made inside a node that had not completed. */
  readonly unfinished: boolean;
  /** The run's metadata: which commit saved it, for a graph with `metadata: environment()`. */
  readonly metadata: Metadata;
  /** How large it is, where the store knows. */
  readonly bytes?: number;
}

/** A run, as its newest checkpoint describes it. */
export interface RunSummary {
  /** Names the run. */
  readonly runId: string;
  /** The graph's name; `""` for a State that no graph has run. */
  readonly graph: string;
  /** What the run is doing, or how it ended. */
  readonly status: RunStatus;
  /** The last node that completed. */
  readonly node: string;
  /** Where a resume would continue, as known at the last save. */
  readonly nextNode: string | undefined;
  /** The phase of the last node that completed; `""` for none. */
  readonly phase: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** When the run began, ISO 8601. */
  readonly startedAt: string;
  /** When its newest checkpoint was saved, ISO 8601. */
  readonly savedAt: string;
  /** When the last node completed, ISO 8601. */
  readonly timestamp: string;
  /** What the run belongs to. */
  readonly metadata: Metadata;
  /** What made it fail; absent in an encrypted store. */
  readonly error?: Pick<RunError, "name" | "message" | "node">;
}

/** Which runs to list. */
export interface RunFilter {
  /** Only this run. */
  readonly runId?: string;
  /** Only runs of this status, or of one of these. */
  readonly status?: RunStatus | readonly RunStatus[];
  /** Only runs of the graph with this name. */
  readonly graph?: string;
  /** Only runs that were last saved before this moment, ISO 8601. */
  readonly before?: string;
  /** Only runs whose metadata has all of these values. */
  readonly metadata?: Metadata;
  /** Continue after this run: the last one of the previous page. */
  readonly cursor?: Pick<RunSummary, "savedAt" | "runId"> | undefined;
  /** At most so many, the most recently saved first. */
  readonly limit?: number;
}

/** Which runs to remove. A run that is not finished stays unless `includeAbandoned` says otherwise. */
export interface Retention {
  /** Remove runs that were last saved more than so many days ago. */
  readonly maxAgeDays?: number;
  /** Keep at most so many finished runs, the most recently saved. */
  readonly maxRuns?: number;
  /** Remove by `maxAgeDays` also runs that never finished, unless a process works on them; false by default. */
  readonly includeAbandoned?: boolean;
  /** Remove nothing, and return what would be removed. */
  readonly dryRun?: boolean;
}

/** How to claim a run. @inline */
export interface ClaimOptions {
  /**
   * How many milliseconds after the last sign of life the claim of a process that died or hangs ends,
   * where the store can't see that itself.
   */
  readonly ttl?: number | undefined;
}

/** Who works on a run. @inline */
export type ClaimHolder = RunHolder;

/** A process's exclusive hold on a run; see {@link CheckpointStore.claim}. */
export interface Claim {
  /** Grows with each claim of the run, in a store that refuses the saves of those before. */
  readonly epoch?: number;
  /** Aborts when somebody else has the run now, in a store where claims can be lost. */
  readonly lost?: AbortSignal;
  /**
   * Whether the run is still this process's, in a store where claims can be lost. Asked before anything
   * begins: the answer comes at once while the claim is known to be good by a clock that also counts while
   * the process is stopped, and from the store after that.
   */
  holds?(): boolean | Promise<boolean>;
  /** Lets others claim the run. Calling it again does nothing. */
  release(): Promise<void>;
}

/**
 * What can be wrong in a store:
 *
 * - `corrupt`: a checkpoint is not what was written;
 * - `unreadable`: it may be what was written, but can't be read here: a key is missing, or it is newer;
 * - `lost`: it needs a checkpoint that is corrupt or gone;
 * - `gap`: a checkpoint is missing between two others;
 * - `quarantined`: it was found corrupt before, and set aside;
 * - `empty`: the run has no checkpoint that is whole;
 * - `leftover`: a process that died left it, and nothing needs it;
 * - `database`: the database itself reports damage.
 *
 * @inline
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
  /** The checkpoint's place in its run; 0 if it concerns none. */
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
 * Keeps States. Each save is a record of its own, with its own id and a sequence that grows by one;
 * nothing rewrites a record. `testCheckpointStore` of `waymark/testing` checks all that is said here.
 */
export interface CheckpointStore {
  /**
   * Keeps a State; it is safe when the promise resolves. The State that comes back carries its
   * `checkpointId` and `sequence` (see {@link State.savedAs}).
   *
   * @throws CheckpointConflictError if the run is not at the sequence that the State carries.
   * @throws SerializationError if the data can't be kept exactly.
   * @throws ConfigError if the run id or an option is invalid.
   */
  save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>>;
  /**
   * The newest State of a run, or the one asked for.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError when it is there but not as it was saved.
   * @throws SerializationError when it holds what this store does not know how to read.
   * @throws ConfigError if the run id or an option is invalid.
   */
  load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>>;
  /**
   * Removes a run and its history; an absent run is fine.
   *
   * @throws ConfigError if the run id or an option is invalid.
   */
  delete(runId: string): Promise<void>;
  /**
   * The ids of all runs.
   *
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
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
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  history?(runId: string): Promise<HistoryEntry[]>;
  /**
   * The runs that fit a filter, most recent first.
   *
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  runs?(filter?: RunFilter): Promise<RunSummary[]>;
  /**
   * Removes old runs; returns the ids of those it removed, or would.
   *
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  prune?(retention: Retention): Promise<string[]>;
  /**
   * Claims a run for this process; `undefined` if a living one, this or another, has it already. It ends
   * when it is released or the process dies. A claim does not stop others from saving: what makes a
   * second writer lose is the conflict.
   *
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
   * @throws ConfigError if the run id or an option is invalid.
   */
  claim?(runId: string, options?: ClaimOptions): Promise<Claim | undefined>;
  /**
   * Who has claimed a run; `undefined` if nobody has.
   *
   * @throws ConfigError if the run id is invalid.
   */
  holder?(runId: string): Promise<ClaimHolder | undefined>;
  /**
   * Reads every checkpoint of a run, or of all runs, and yields what is wrong. Nothing is changed.
   *
   * @throws ConfigError if the run id is invalid.
   */
  verify?(runId?: string): AsyncIterable<Finding>;
  /**
   * The checkpoints of a run, oldest first, for another store's `import`; none for an unknown run.
   *
   * @throws CheckpointCorruptionError when one is not as it was saved.
   * @throws SerializationError when one holds what this store does not know how to read.
   * @throws ConfigError if the run id or an option is invalid.
   */
  export?(runId: string): AsyncIterable<ExportedCheckpoint>;
  /**
   * Takes over checkpoints of a run that this store does not have, oldest first, each with its own id
   * and sequence. All are kept until the run's next save.
   *
   * @throws CheckpointConflictError when the run is there already, or sequences do not grow.
   * @throws CheckpointCorruptionError if something else is where the store keeps its records.
   * @throws SerializationError when one can't be kept exactly.
   * @throws ConfigError if the run id or an option is invalid.
   */
  import?(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void>;
  /** Keeps what a graph looks like, once for each fingerprint, so that its runs can be drawn without its code. */
  saveTopology?(topology: GraphTopology): Promise<void>;
  /** The graph of a fingerprint; `undefined` if the store does not know it. */
  topology?(fingerprint: string): Promise<GraphTopology | undefined>;
  /** Lets go of files and connections. */
  close?(): Promise<void>;
}

/** Whether a value has the four methods every store has. */
export function isCheckpointStore(value: unknown): value is CheckpointStore {
  return (
    typeof value === "object" &&
    value !== null &&
    ["save", "load", "delete", "list"].every(
      (method) => typeof Reflect.get(value, method) === "function",
    )
  );
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

/** The error for a checkpoint that is not there. */
export function notFound(runId: string, at: CheckpointAt = {}): CheckpointNotFoundError {
  return new CheckpointNotFoundError(runId, at);
}

/** Says of a run that what was asked for is there, and corrupt; others may be whole. */
export function noneWhole(runId: string, at: CheckpointAt): string {
  return `run ${JSON.stringify(runId)} has no checkpoint ${wordsOf(at) || "left"} that is whole`;
}

/** What a State says of itself, whatever its data; see {@link State} for each. @inline */
export interface Checkpoint {
  /** Names the run. */
  readonly runId: string;
  /** The graph that ran it last. */
  readonly graph: GraphIdentity | undefined;
  /** What the run is doing, or how it ended. */
  readonly status: RunStatus;
  /** The last node that completed. */
  readonly checkpointNode: string;
  /** Where a resume would continue. */
  readonly nextNode: string | undefined;
  /** The phase of the last node that completed. */
  readonly phase: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** When the run began, ISO 8601. */
  readonly startedAt: string;
  /** When the checkpoint was saved, ISO 8601. */
  readonly savedAt: string;
  /** When the last node completed, ISO 8601. */
  readonly timestamp: string;
  /** Why it was saved. */
  readonly reason: string;
  /** What the run belongs to. */
  readonly metadata: Metadata;
  /** What made the run fail. */
  readonly error: RunError | undefined;
  /** Its id; `""` until saved. */
  readonly checkpointId: string;
  /** Its place in the run's history; 0 until saved. */
  readonly sequence: number;
  /** How large it is, where the store says so. */
  readonly bytes?: number | undefined;
}

/** A run's summary out of its newest State. */
export function summarize(state: Checkpoint): RunSummary {
  const { runId, graph, status, checkpointNode: node, nextNode, phase, step, error } = state;
  const { startedAt, savedAt, timestamp, metadata } = state;
  const summary = { runId, graph: graph?.name ?? "", status, node, nextNode, phase, step };
  return {
    ...summary,
    startedAt,
    savedAt,
    timestamp,
    metadata,
    ...(error && { error: bare(error) }),
  };
}

/** An error without its stack. */
export function bare({
  name,
  message,
  node,
}: RunError): Pick<RunError, "name" | "message" | "node"> {
  return { name, message, node };
}

/** A history entry out of a saved State. */
export function entryOf(state: Checkpoint, parentId: string, unfinished: boolean): HistoryEntry {
  return {
    sequence: state.sequence,
    step: state.step,
    node: state.checkpointNode,
    phase: state.phase,
    status: state.status,
    timestamp: state.timestamp,
    savedAt: state.savedAt,
    checkpointId: state.checkpointId,
    parentId,
    reason: state.reason,
    unfinished,
    metadata: state.metadata,
    ...(state.bytes !== undefined && { bytes: state.bytes }),
  };
}
