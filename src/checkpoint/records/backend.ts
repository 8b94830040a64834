import type { Claim, ClaimHolder, Finding, RunFilter, RunSummary } from "../store.js";
import type { RecordHeader } from "./header.js";

/** A record as a backend keeps it: three texts, none of which it has to understand. */
export interface StoredRecord {
  /** Its place in the run's history. */
  readonly sequence: number;
  /** The header, as JSON text. */
  readonly header: string;
  /** The snapshot or patch as JSON text, or a JSON string of base64 where a codec was at work. */
  readonly content: string;
  /** The SHA-256 over both, in hex. */
  readonly sha256: string;
  /** Why it can't be read as a record, if so; the rest is empty then. */
  readonly fault?: Error;
}

/** A record that is to be appended, with what a backend may want as columns. */
export interface NewRecord extends StoredRecord {
  /** The parsed header. */
  readonly fields: RecordHeader;
  /** The sequence of the snapshot it builds on; its own if it is one. */
  readonly base: number;
  /** The size of header and content in bytes. */
  readonly bytes: number;
}

/** The newest checkpoint of a run. */
export interface Head {
  /** The highest sequence ever used, also by what was set aside; 0 for none. */
  readonly sequence: number;
  /** Its id; `""` for none, or where it can't be read. */
  readonly checkpointId: string;
  /** Who has claimed the run since this store did, if that is why nothing was written. */
  readonly claimedBy?: ClaimHolder;
}

/** Where a run has to be for a record to be appended. */
export interface After {
  /** The sequence of its newest checkpoint; 0 if there must be none. */
  readonly sequence: number;
  /** The id of that checkpoint; `undefined` for any. */
  readonly checkpointId: string | undefined;
}

/** The records that make up one State. */
export interface Chain {
  /** The newest checkpoint of the run, read in the same moment. */
  readonly head: Head;
  /** The snapshot, the patches after it and, last, the record that was asked for; empty if there is none. */
  readonly records: readonly StoredRecord[];
}

/** What is known of a record without reading its content. */
export interface HeaderEntry {
  /** Its place in the run's history. */
  readonly sequence: number;
  /** Its size in bytes. */
  readonly bytes: number;
  /** `undefined` if it can't be read. */
  readonly header: RecordHeader | undefined;
  /** Whether it was set aside. */
  readonly setAside: boolean;
}

/** A run, with the sequence it is at. */
export interface RunEntry extends RunSummary {
  /** The sequence of its newest checkpoint. */
  readonly sequence: number;
}

/** A run to remove. */
export interface Removal {
  /** The run. */
  readonly runId: string;
  /** Only while its newest checkpoint has this sequence; any if absent. */
  readonly sequence?: number;
}

/**
 * What a store has to do itself; `RecordStore` does the rest. A backend keeps records, it does not
 * look into them: hashes, codecs, fallback, retention and ids are not its concern.
 *
 * Run ids were checked before. A method that finds nothing gives nothing; errors are thrown as they
 * come, best as a {@link BackendError} that knows whether a record may have been written.
 */
export interface RecordBackend {
  /** Where the records are, for messages: `./.waymark`, `Postgres schema "waymark"`. */
  readonly place: string;

  /**
   * Writes a record if the run is where `after` says, both in one step that nobody can get between,
   * and for good: when the promise resolves, a crash or power cut can't undo it. A claim that this
   * store holds is part of the condition.
   *
   * @param encode - gives the record; call it once, and late if something can be prepared meanwhile.
   * @returns `undefined` when it is written; else where the run is.
   */
  append(
    runId: string,
    after: After,
    encode: () => NewRecord | Promise<NewRecord>,
  ): Promise<Head | undefined>;

  /**
   * The records of one State: of this very sequence, or of the newest below one that is not set aside.
   * `undefined` when there is nothing of this run, not even set aside.
   */
  chain(
    runId: string,
    at: { readonly sequence: number } | { readonly below: number },
  ): Promise<Chain | undefined>;

  /** All records of a run, newest first, those that were set aside too. */
  headers(runId: string): Promise<readonly HeaderEntry[]>;

  /** The records of a run between two sequences, both included, oldest first; none that was set aside. */
  records(runId: string, from: number, to: number): Promise<readonly StoredRecord[]>;

  /**
   * Puts a record that is not what was written where no load finds it and a person can look at it.
   *
   * @param isBad - says whether what is there now is still not what was written.
   * @returns where it is now; `undefined` when it is gone, or whole by now.
   */
  setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined>;

  /** Removes records that are not kept any more, now or later, together with others. */
  discard(runId: string, sequences: readonly number[]): Promise<void>;

  /** The runs that fit a filter, newest save first. The filter was checked. */
  runs(filter: RunFilter): Promise<RunEntry[]>;

  /** The ids of all runs. */
  list(): Promise<string[]>;

  /** The run that has this checkpoint. */
  find(checkpointId: string): Promise<string | undefined>;

  /**
   * Removes runs with all their records, for good when the promise resolves; absent ones are fine.
   *
   * @param options - `unclaimed`: leaves alone what anybody has claimed; `dryRun`: removes nothing.
   * @returns the ids of those that it removed, or would.
   */
  remove(
    runs: readonly Removal[],
    options: { readonly unclaimed: boolean; readonly dryRun: boolean },
  ): Promise<string[]>;

  /** Claims a run; `undefined` when a living process has it. See `CheckpointStore.claim`. */
  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined>;

  /** Who has claimed a run. */
  holder(runId: string): Promise<ClaimHolder | undefined>;

  /** Keeps a text about a graph under the graph's fingerprint; one that is there already stays. */
  saveGraph(fingerprint: string, text: string): Promise<void>;

  /** What was kept of a graph. */
  graph(fingerprint: string): Promise<string | undefined>;

  /** What is wrong with the store as a whole, beside its records. */
  verify?(): AsyncIterable<Finding>;

  /** Finishes what was put off and lets go of files and connections. The backend may be used again. */
  close(): Promise<void>;
}

/** A run as its newest header describes it. */
export function runEntryOf(header: RecordHeader, sequence: number): RunEntry {
  const { runId, graph, status, node, nextNode, phase = "", step, metadata = {} } = header;
  const { startedAt, savedAt, timestamp, error } = header;
  const place = { runId, graph, status, node, nextNode, phase, step, sequence };
  return { ...place, startedAt, savedAt, timestamp, metadata, ...(error && { error }) };
}

/** An error of a backend. */
export class BackendError extends Error {
  /** Whether nobody knows if the record was written. */
  readonly unsure: boolean;

  /** @param message - what happened, and what to do about it. */
  constructor(message: string, options: { readonly unsure: boolean; readonly cause: unknown }) {
    super(message, { cause: options.cause });
    this.name = "BackendError";
    this.unsure = options.unsure;
  }
}
