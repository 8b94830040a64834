import { CheckpointNotFoundError, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import type { GraphIdentity, RunStatus, Saved } from "../state/record.js";
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
  /** Tells those who listen to the graph, of a corrupt file for example. */
  readonly emit?: (<T extends EventType>(type: T, data: EventMap[T]) => void) | undefined;
}

/** What a graph tells the store about a save. */
export interface SaveOptions extends StoreContext {
  /** How many checkpoints of the run to keep, the newest; at least 2. The store's own setting by default. */
  readonly keep?: number | undefined;
}

/** One checkpoint of a run, without its data. */
export interface HistoryEntry {
  /** Its place in the run's history, from 1 up. */
  readonly sequence: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** The last of them; `""` before the first. */
  readonly node: string;
  /** What the run was doing. */
  readonly status: RunStatus;
  /** When that node completed, ISO 8601. */
  readonly timestamp: string;
  /** Its id. */
  readonly checkpointId: string;
  /** The checkpoint it was made from; `""` for the first of a run that was not forked. */
  readonly parentId: string;
  /** Why it was saved. */
  readonly reason: string;
  /** How large it is, where the store knows. */
  readonly bytes?: number;
}

/** A run, as its newest checkpoint tells of it. */
export interface RunSummary {
  /** Names the run. */
  readonly runId: string;
  /** The graph's name; `""` for a State that no graph has run. */
  readonly graph: string;
  /** What the run is doing, or how it ended. */
  readonly status: RunStatus;
  /** The last node that completed. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** When the last of them completed, ISO 8601. */
  readonly timestamp: string;
}

/** Which runs to list. */
export interface RunFilter {
  /** Only runs of this status, or of one of these. */
  readonly status?: RunStatus | readonly RunStatus[];
  /** Only runs of the graph with this name. */
  readonly graph?: string;
  /** Only runs whose last node completed before this moment, ISO 8601. */
  readonly before?: string;
  /** Go on after this run: the last one of the page before. */
  readonly cursor?: Pick<RunSummary, "timestamp" | "runId"> | undefined;
  /** At most so many, the most recent first. */
  readonly limit?: number;
}

/** Which runs to remove. A run that is not finished is never removed. */
export interface Retention {
  /** Remove runs whose last node completed more than so many days ago. */
  readonly maxAgeDays?: number;
  /** Keep at most so many finished runs, the most recent. */
  readonly maxRuns?: number;
  /** Only say what would be removed. */
  readonly dryRun?: boolean;
}

/** How to claim a run. */
export interface ClaimOptions {
  /**
   * How many milliseconds after the last sign of life the claim of a process that died or hangs ends,
   * where the store can't see that itself.
   */
  readonly ttl?: number | undefined;
}

/** Says that a process works on a run; see {@link CheckpointStore.claim}. */
export interface Claim {
  /** Grows with each claim of the run, in a store that refuses the saves of those before. */
  readonly epoch?: number;
  /** Aborts when somebody else has the run now, in a store where claims can be lost. */
  readonly lost?: AbortSignal;
  /** Lets others claim the run. Calling it again does nothing. */
  release(): Promise<void>;
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
   * @throws CheckpointConflictError when the run is not at the sequence that the State carries.
   * @throws SerializationError when the data can't be kept exactly.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  save<D extends object>(state: State<D>, options?: SaveOptions): Promise<State<D>>;
  /**
   * The newest State of a run, or the one asked for.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError when it is there but not as it was saved.
   * @throws SerializationError when it holds what this store does not know how to read.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  load<D extends object>(
    runId: string,
    at?: CheckpointAt,
    context?: StoreContext,
  ): Promise<State<D>>;
  /**
   * Removes a run and its history; an absent run is fine.
   *
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  delete(runId: string): Promise<void>;
  /**
   * The ids of all runs.
   *
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   */
  list(): Promise<string[]>;
  /**
   * The checkpoints of a run, newest first; none for an unknown run.
   *
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  history?(runId: string): Promise<HistoryEntry[]>;
  /**
   * The runs that fit a filter, most recent first.
   *
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  runs?(filter?: RunFilter): Promise<RunSummary[]>;
  /**
   * Removes old runs; returns the ids of those it removed, or would.
   *
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  prune?(retention: Retention): Promise<string[]>;
  /**
   * Says that this process works on a run; `undefined` when a living one, this or another, has said so
   * already. Ends when it is released or the process dies. It keeps nobody from saving who has not
   * claimed the run: what makes a second writer lose is the conflict.
   *
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  claim?(runId: string, options?: ClaimOptions): Promise<Claim | undefined>;
  /**
   * The checkpoints of a run, oldest first, for another store's `import`; none for an unknown run.
   *
   * @throws CheckpointCorruptionError when one is not as it was saved.
   * @throws SerializationError when one holds what this store does not know how to read.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  export?(runId: string): AsyncIterable<ExportedCheckpoint>;
  /**
   * Takes over checkpoints of a run that this store does not have, oldest first, each with its own id
   * and sequence. All are kept until the run's next save.
   *
   * @throws CheckpointConflictError when the run is there already, or sequences do not grow.
   * @throws CheckpointCorruptionError when something else is in the place of what the store keeps.
   * @throws SerializationError when one can't be kept exactly.
   * @throws ConfigError when the run id, or an option, is not what it must be.
   */
  import?(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void>;
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
  return new CheckpointNotFoundError(runId, whereOf(at));
}

/** Which checkpoint was asked for, in words; `""` when it was the newest. */
function whereOf({ step, checkpointId }: CheckpointAt): string {
  const parts = [
    step === undefined ? "" : `at step ${step}`,
    checkpointId === undefined ? "" : `with the id ${show(checkpointId)}`,
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Says of a run that what was asked for is there, and corrupt; others may be whole. */
export function noneWhole(runId: string, at: CheckpointAt): string {
  return `run ${JSON.stringify(runId)} has no checkpoint ${whereOf(at) || "left"} that is whole`;
}

/** What a State says of itself, whatever its data; see {@link State} for each. */
export interface Checkpoint extends Saved {
  /** Names the run. */
  readonly runId: string;
  /** The graph that ran it last. */
  readonly graph: GraphIdentity | undefined;
  /** What the run is doing, or how it ended. */
  readonly status: RunStatus;
  /** The last node that completed. */
  readonly checkpointNode: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** When the last of them completed, ISO 8601. */
  readonly timestamp: string;
  /** Why it was saved. */
  readonly reason: string;
}

/** A run's summary out of its newest State. */
export function summarize(state: Checkpoint): RunSummary {
  return {
    runId: state.runId,
    graph: state.graph?.name ?? "",
    status: state.status,
    node: state.checkpointNode,
    step: state.step,
    timestamp: state.timestamp,
  };
}

/** A history entry out of a saved State. */
export function entryOf(state: Checkpoint, parentId: string): HistoryEntry {
  return {
    sequence: state.sequence,
    step: state.step,
    node: state.checkpointNode,
    status: state.status,
    timestamp: state.timestamp,
    checkpointId: state.checkpointId,
    parentId,
    reason: state.reason,
    ...(state.bytes !== undefined && { bytes: state.bytes }),
  };
}
