import { isoNow } from "../clock.js";
import { type Counts, noCounts } from "./counts.js";
import { Ledger } from "./ledger.js";
import { type Begun, noSteps, type StepLog } from "./steps.js";

/** What a run is doing, or how it ended. */
export type RunStatus = "pending" | "in_progress" | "paused" | "completed" | "failed";

/** Every status a run can have. */
export const statuses: readonly RunStatus[] = [
  "pending",
  "in_progress",
  "paused",
  "completed",
  "failed",
];

/** What made a run fail. */
export interface RunError {
  /** The name of the error, such as `TypeError`. */
  readonly name: string;
  /** Its message; if longer, the first 4,000 characters and how many follow. */
  readonly message: string;
  /** The node that threw it. */
  readonly node: string;
  /** Where it was thrown; cut if it is long. */
  readonly stack?: string;
}

/** Small values that a caller attaches to a run: saved with every checkpoint, for listing and filtering. */
export interface Metadata {
  /** A value by name. */
  readonly [key: string]: string | number | boolean;
}

/** The graph that a State was last run by. */
export interface GraphIdentity {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** A hash of its nodes and edges. */
  readonly fingerprint: string;
}

/** The run and checkpoint that a run was forked from. */
export interface ParentLink {
  /** The run it was forked from. */
  readonly runId: string;
  /** The checkpoint it was forked at. */
  readonly checkpointId: string;
}

/** Something that a paused run is waiting for. */
export interface PauseRequest {
  /** Distinguishes several pauses; `""` for a node's only one. */
  readonly name: string;
  /** Why the run waits. */
  readonly reason: string;
  /** What a person is asked. If set, the run can't continue without an answer. */
  readonly ask?: unknown;
  /** The key of the data that receives the input; without it the input is merged into the data. */
  readonly into?: string;
  /** Set for a breakpoint of the config, which takes no input: before or after the node. */
  readonly breakpoint?: "before" | "after";
  /** When the run resumes by itself, ISO 8601, if it is only waiting for that. */
  readonly until?: string;
  /** The JSON Schema of the answer, if the pause has a schema whose library can produce one. */
  readonly schema?: object;
  /** When it times out, ISO 8601, if it has a timeout. */
  readonly deadline?: string;
  /** What is merged into the data if nobody answers by then. */
  readonly onTimeout?: object;
  /** Why the last answer was rejected. */
  readonly refused?: string;
}

/** An answer that arrived before its pause, or before the run was resumed. */
export interface Answer {
  /** The name of the pause. */
  readonly name: string;
  readonly value: unknown;
}

/** How often a run was recovered at startup without progress. */
export interface Recovery {
  readonly attempts: number;
  /** Its progress then: the step, and how many results its unfinished node had recorded. */
  readonly step: number;
  readonly results: number;
}

/** What a node that has not completed has done so far. */
export interface Unfinished {
  readonly node: string;
  /** The results of work that must not be repeated, by key. */
  readonly results: Results;
  /** How many results it has recorded in total, including those removed since; a replacement does not count. */
  readonly count: number;
  /** Whether a save must walk the results; see `json-traits.ts`. */
  readonly opaque: boolean;
}

/** What stays the same for a whole run. */
interface Identity {
  readonly runId: string;
  readonly parent: ParentLink | undefined;
  readonly graph: GraphIdentity | undefined;
  readonly startedAt: string;
  readonly metadata: Metadata;
  /** The metadata keys that come from the graph; the others are the run's own. */
  readonly inherited: readonly string[];
}

/** The progress of a run. Changes with every completed node. */
export interface Progress {
  readonly checkpointNode: string;
  readonly phase: string;
  readonly nextNode: string | undefined;
  readonly timestamp: string;
  readonly step: number;
  readonly status: RunStatus;
  readonly error: RunError | undefined;
  readonly reason: string;
  readonly counts: Counts;
  readonly steps: StepLog;
  readonly pauses: readonly PauseRequest[];
  /** Answers that no pause has taken yet, oldest first. */
  readonly answers: readonly Answer[];
  readonly unfinished: Unfinished | undefined;
  /** What is known about the next step if an earlier process has begun it. */
  readonly begun: Begun | undefined;
  /** The tasks of a `dag` that have completed, oldest first; a resume of a changed `dag` relies on it. */
  readonly tasks: readonly string[];
  /** The sequence of the last rollback; 0 if there was none. Part of each idempotency key. */
  readonly rollback: number;
  readonly recovery: Recovery | undefined;
  /** How often the run was resumed. */
  readonly resumes: number;
  /** How often the run was resumed after its process had died. */
  readonly crashes: number;
  readonly ledger: Ledger;
}

/**
 * Whether a State is a progress save: one made inside a node that has not completed. The save that resumes a
 * failed run is one too.
 */
export function isProgressSave({ unfinished, status, reason }: Progress): boolean {
  return unfinished !== undefined || (status === "failed" && reason === "resume");
}

/** The record that a State was last saved as, or loaded from. */
export interface Saved {
  /** The id of that one record. */
  readonly checkpointId: string;
  /** Its position in the run's history, starting at 1; 0 before the first save. */
  readonly sequence: number;
  /** When it was saved, ISO 8601; `""` before the first save. */
  readonly savedAt: string;
  /** Its size in bytes, if the store knows it. */
  readonly bytes?: number | undefined;
}

/** A record that a store has just saved; `savedAt` is now by default. */
export type SavedNow = Omit<Saved, "savedAt"> & Partial<Pick<Saved, "savedAt">>;

/** Everything that a State consists of, except its observer. */
export interface StateRecord {
  /** Deeply frozen. */
  readonly data: object;
  /** See `json-traits.ts`. */
  readonly traits: number;
  readonly identity: Identity;
  readonly progress: Progress;
  readonly saved: Saved;
}

/** Nothing saved yet. */
export const unsaved: Saved = Object.freeze({
  checkpointId: "",
  sequence: 0,
  savedAt: "",
  bytes: undefined,
});

/** No metadata. */
export const noMetadata: Metadata = Object.freeze({});

/** No metadata from a graph. */
export const noneInherited: readonly string[] = Object.freeze([]);

/** No pauses. */
export const noPauses: readonly PauseRequest[] = Object.freeze([]);

/** No pending answers. */
const noAnswers: readonly Answer[] = Object.freeze([]);

/** No completed tasks. */
const noTasks: readonly string[] = Object.freeze([]);

type Result = readonly [key: string, value: unknown];

/** Marks a removed result in the log. */
const gone = Symbol("gone");

/**
 * The results of a node, by key. A node may have a hundred thousand of them and each save captures them, so
 * capturing is free.
 */
export class Results {
  /**
   * Append-only, so that it can be shared by instances of different length. A later entry replaces an earlier
   * one with the same key.
   */
  readonly #log: Result[];
  readonly #length: number;

  private constructor(log: Result[]) {
    this.#log = log;
    this.#length = log.length;
  }

  static of(results: Iterable<Result>): Results {
    return new Results([...results]);
  }

  /** The number of entries, including replaced ones. */
  get length(): number {
    return this.#length;
  }

  with(key: string, value: unknown): Results {
    const isNewest = this.#log.length === this.#length;
    const log = isNewest ? this.#log : this.#log.slice(0, this.#length);
    log.push([key, value]);
    return new Results(log);
  }

  without(key: string): Results {
    return this.with(key, gone);
  }

  byKey(): Map<string, unknown> {
    const known = new Map(this.#log.slice(0, this.#length));
    for (const [key, value] of known) if (value === gone) known.delete(key);
    return known;
  }
}

/** The progress of a run that has not begun. */
export function newProgress(): Progress {
  return {
    checkpointNode: "",
    phase: "",
    nextNode: undefined,
    timestamp: isoNow(),
    step: 0,
    status: "pending",
    error: undefined,
    reason: "",
    counts: noCounts,
    steps: noSteps,
    pauses: noPauses,
    answers: noAnswers,
    unfinished: undefined,
    begun: undefined,
    tasks: noTasks,
    rollback: 0,
    recovery: undefined,
    resumes: 0,
    crashes: 0,
    ledger: Ledger.empty,
  };
}

/** Whether a person can answer a pause: it is neither a breakpoint nor a wait until a given time. */
export function isAnswerable({
  breakpoint,
  until,
}: {
  readonly breakpoint?: unknown;
  readonly until?: unknown;
}): boolean {
  return breakpoint === undefined && until === undefined;
}
