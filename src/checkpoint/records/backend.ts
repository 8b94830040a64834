import { CheckpointConflictError, WaymarkError } from "../../errors.js";
import { listedOf } from "../../state/fields.js";
import type { Claim, ClaimHolder, Finding, RunFilter, RunSummary } from "../store.js";
import type { RecordHeader } from "./header.js";

/** A record as a backend stores it: three strings, none of which it has to understand. */
export interface StoredRecord {
  /** Its position in the run's history. */
  readonly sequence: number;
  /** The header, as JSON text. */
  readonly header: string;
  /** The snapshot or patch as JSON text, or as a JSON string of base64 if a codec was applied. */
  readonly content: string;
  /** The SHA-256 over both, in hex. */
  readonly sha256: string;
  /** Why it can't be read as a record; the other fields are empty then. */
  readonly fault?: Error;
}

/** A record to append, with the fields that a backend may store as columns. */
export interface NewRecord extends StoredRecord {
  /** The parsed header. */
  readonly fields: RecordHeader;
  /** The sequence of the snapshot it builds on; its own if it is one. */
  readonly base: number;
  /** The size of header and content in bytes. */
  readonly bytes: number;
}

/** Returns the record to append. */
export type Encode = () => NewRecord | Promise<NewRecord>;

/** Which record of a run: the one with this sequence, or the newest below it that is not set aside. */
export type RecordAt =
  | {
      /** Its sequence. */
      readonly sequence: number;
    }
  | {
      /** The sequence it must be below. */
      readonly below: number;
    };

/** The newest checkpoint of a run. */
export interface Head {
  /** The highest sequence ever used, including records that were set aside; 0 if there is none. */
  readonly sequence: number;
  /** Its id; `""` if there is none, or it can't be read. */
  readonly checkpointId: string;
  /** Who has claimed the run since this store did, if that is why nothing was written. */
  readonly claimedBy?: ClaimHolder;
}

/** The newest checkpoint that the run must have for a record to be appended. */
export interface After {
  /** The sequence of its newest checkpoint; 0 if there must be none. */
  readonly sequence: number;
  /** The id of that checkpoint; `undefined` for any. */
  readonly checkpointId: string | undefined;
}

/** The records that make up one State. */
export interface Chain {
  /** The newest checkpoint of the run, read in the same snapshot. */
  readonly head: Head;
  /** The snapshot, the patches after it and, last, the requested record; empty if there is none. */
  readonly records: readonly StoredRecord[];
}

/** What is known about a record without reading its content. */
export interface HeaderEntry {
  /** Its position in the run's history. */
  readonly sequence: number;
  /** Its size in bytes. */
  readonly bytes: number;
  /** `undefined` if it can't be read. */
  readonly header: RecordHeader | undefined;
  /** Whether it was set aside. */
  readonly setAside: boolean;
}

/** A run, with its current sequence. */
export interface RunEntry extends RunSummary {
  /** The sequence of its newest checkpoint. */
  readonly sequence: number;
}

/** A run to remove. */
export interface Removal {
  /** The run. */
  readonly runId: string;
  /** Only if its newest checkpoint has this sequence; unconditionally if absent. */
  readonly sequence?: number;
}

/** How to remove runs. */
export interface RemoveOptions {
  /** Skips runs that anyone has claimed. */
  readonly unclaimed: boolean;
  /** Removes nothing. */
  readonly dryRun: boolean;
}

/**
 * What a store implements itself; `RecordStore` does the rest. A backend stores records without looking into them:
 * hashes, codecs, fallback, retention and ids are not its concern.
 *
 * Run ids are validated before. A method that finds nothing returns nothing; failures are thrown, preferably
 * as a {@link BackendError}, which says whether a record may have been written.
 */
export interface RecordBackend {
  /** Where the records are, for messages: `./.waymark`, `Postgres schema "waymark"`. */
  readonly place: string;

  /**
   * Writes a record if the run is still at `after`, both in one atomic step, and durably: when the promise
   * resolves, a crash or power cut can't undo it. A claim that this store holds is part of the condition.
   *
   * @param encode - returns the record; call it once, and late if something can be prepared meanwhile.
   * @returns `undefined` if it was written; otherwise the run's head.
   */
  append(runId: string, after: After, encode: Encode): Promise<Head | undefined>;

  /**
   * The records of one State. `undefined` if there is nothing of this run, not even a record that was set aside.
   */
  chain(runId: string, at: RecordAt): Promise<Chain | undefined>;

  /** All records of a run, newest first, including those that were set aside. */
  headers(runId: string): Promise<readonly HeaderEntry[]>;

  /** The records of a run between two sequences, inclusive, oldest first; none that was set aside. */
  records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]>;

  /**
   * Moves a damaged record to where no load finds it but it can be inspected.
   *
   * @param isBad - returns whether the record that is there now is still damaged.
   * @returns where it is now; `undefined` if it is gone, or intact by now.
   */
  setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined>;

  /** Removes records that are no longer kept, now or later in a batch. */
  discard(runId: string, sequences: readonly number[]): Promise<void>;

  /** The runs that match a filter, most recently saved first. The filter is valid. */
  runs(filter: RunFilter): Promise<RunEntry[]>;

  /** The ids of the runs that `runs` leaves out because no header of them can be read; none if absent. */
  unreadable?(): Promise<string[]>;

  /** The ids of all runs. */
  list(): Promise<string[]>;

  /** The run that has this checkpoint. */
  find(checkpointId: string): Promise<string | undefined>;

  /**
   * Removes runs with all their records, durably when the promise resolves; ignores runs that do not exist.
   *
   * @returns the ids of those that it removed, or would remove.
   */
  remove(runs: readonly Removal[], options: RemoveOptions): Promise<string[]>;

  /** Claims a run; `undefined` if a live process holds it. See `CheckpointStore.claim`. */
  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined>;

  /** Who holds a run. */
  holder(runId: string): Promise<ClaimHolder | undefined>;

  /** Stores a graph's topology as text under the graph's fingerprint; an existing one stays. */
  saveGraph(fingerprint: string, text: string): Promise<void>;

  /** The stored topology of a graph. */
  graph(fingerprint: string): Promise<string | undefined>;

  /** What is wrong with the store as a whole, apart from its records. */
  verify?(): AsyncIterable<Finding>;

  /** Finishes deferred work, and closes files and connections. The backend may be used again. */
  close(): Promise<void>;
}

/**
 * A run as its newest header describes it.
 *
 * @example
 * ```ts
 * import { filterRuns, parseHeader, type RunEntry, runEntryOf } from "waymark/stores";
 *
 * // The newest header of each run, as your backend keeps it.
 * const newest = new Map<number, string>();
 * const runs: RunEntry[] = [...newest].flatMap(([sequence, text]) => {
 *   const header = parseHeader(text);
 *   return header === undefined ? [] : [runEntryOf(header, sequence)];
 * });
 * console.log(filterRuns(runs, { status: "paused" }).length); // 0
 * ```
 */
export function runEntryOf(header: RecordHeader, sequence: number): RunEntry {
  return listedOf(header, "runs", { sequence });
}

/** A run whose header can't be read, as a listing shows it. */
export function unreadableRun(
  known: Pick<RunEntry, "runId" | "sequence" | "graph" | "status" | "savedAt">,
): RunEntry {
  const unknown = { node: "", phase: "", step: 0, metadata: {} };
  return { ...unknown, ...known, startedAt: "", timestamp: "" };
}

/** The error for a run that another process has claimed since this one did. */
export function claimLost(
  runId: string,
  at: number,
  head: number,
  { host, pid }: ClaimHolder,
  what: "write to it" | "remove it",
): CheckpointConflictError {
  return new CheckpointConflictError(runId, at, head, {
    problem: `has since been claimed by process ${pid} on ${host}: this process can no longer ${what}`,
  });
}

/**
 * A backend could not do its work: its disk, its server or the connection to it failed.
 *
 * @example
 * ```ts
 * import { BackendError } from "waymark/stores";
 *
 * const cause = new Error("connection reset");
 * // The record may have been written: the store looks before it saves again.
 * const error = new BackendError("the connection broke during the save", { unsure: true, cause });
 * console.log(error.code, error.unsure); // STORE true
 * ```
 */
export class BackendError extends WaymarkError {
  /** Whether it is unknown if the record was written. */
  readonly unsure: boolean;

  /** @param message - what happened, and what to do about it. */
  constructor(message: string, options: { readonly unsure: boolean; readonly cause: unknown }) {
    super("STORE", message, { cause: options.cause });
    this.unsure = options.unsure;
  }
}
