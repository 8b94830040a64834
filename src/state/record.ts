import { isoNow } from "../clock.js";
import { Ledger } from "./ledger.js";
import { type Begun, type NodeCounts, noCounts, noSteps, type StepLog } from "./steps.js";

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
  /** Its message; of a longer one the first 4,000 characters, and how many follow. */
  readonly message: string;
  /** The node that threw it. */
  readonly node: string;
  /** Where it was thrown, as far as it was kept. */
  readonly stack?: string;
}

/** Small values that a caller attaches to a run: saved with every checkpoint, for listing and filtering. */
export interface Metadata {
  /** A value by its name. */
  readonly [key: string]: string | number | boolean;
}

/** The graph that a State was last run by. @inline */
export interface GraphIdentity {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** A hash of its nodes and edges. */
  readonly fingerprint: string;
}

/** Which checkpoint of which run a forked run was made from. @inline */
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
  /** What a person is asked. If set, the run can't continue without input. */
  readonly ask?: unknown;
  /** The key of the data that receives the input; without it the input is merged into the data. */
  readonly into?: string;
  /** Set for a breakpoint of the config, which takes no input: before or after the node. */
  readonly breakpoint?: "before" | "after";
  /** When the run resumes by itself, ISO 8601, if it is only waiting for that. */
  readonly until?: string;
  /** The JSON Schema of the answer, if the pause has a schema whose library can produce one. */
  readonly schema?: object;
  /** When its time is up, ISO 8601, if it has a timeout. */
  readonly deadline?: string;
  /** What is merged into the data if nobody answers by then. */
  readonly onTimeout?: object;
  /** Why the last answer was rejected. */
  readonly refused?: string;
}

/** An answer that came before its pause was asked, or before the run was resumed. */
export interface Signal {
  /** The name of the pause. */
  readonly name: string;
  readonly value: unknown;
}

/** How often a run was recovered at startup and got no further. */
export interface Recovery {
  readonly attempts: number;
  /** How far it had come: the step, and how many results its unfinished node had got. */
  readonly step: number;
  readonly results: number;
}

/** What a node that has not completed has done so far. */
export interface Unfinished {
  readonly node: string;
  /** What it must not do again, by key. */
  readonly results: Results;
  /** How many results it has got in all, also those that it let go of since; one that replaces another is no new one. */
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
  /** The keys of the metadata that are the graph's; the others are the run's own. */
  readonly inherited: readonly string[];
}

/** How far a run is. Changes with every completed node. */
export interface Progress {
  readonly checkpointNode: string;
  readonly phase: string;
  readonly nextNode: string | undefined;
  readonly timestamp: string;
  readonly step: number;
  readonly status: RunStatus;
  readonly error: RunError | undefined;
  readonly reason: string;
  readonly counts: NodeCounts;
  readonly steps: StepLog;
  readonly pauses: readonly PauseRequest[];
  /** Answers that no pause has taken yet, oldest first. */
  readonly signals: readonly Signal[];
  readonly unfinished: Unfinished | undefined;
  /** What the record of the next step starts from, where an earlier process has begun it. */
  readonly begun: Begun | undefined;
  /** The tasks of a `dag` that have completed, oldest first: what a resume of a changed one goes by. */
  readonly tasks: readonly string[];
  /** The sequence at which the run was last set back; 0 if it never was. Part of each idempotency key. */
  readonly rollback: number;
  readonly recovery: Recovery | undefined;
  /** How often the run was resumed. */
  readonly resumes: number;
  /** How often the run was resumed after its process had died. */
  readonly crashes: number;
  readonly ledger: Ledger;
}

/** Whether a State is saved inside a node that has not completed: a progress save. One that a failed run is resumed by is such. */
export function isProgressSave({ unfinished, status, reason }: Progress): boolean {
  return unfinished !== undefined || (status === "failed" && reason === "resume");
}

/** How often each node completed, by node name. */
export type Visits = Readonly<Record<string, number>>;

/** The record that a State was last saved as, or loaded from. @inline */
export interface Saved {
  /** The id of that one record. */
  readonly checkpointId: string;
  /** Its place in the run's history, from 1 up; 0 before the first save. */
  readonly sequence: number;
  /** When it was saved, ISO 8601; `""` before the first save. */
  readonly savedAt: string;
  /** How large it is, where the store says so. */
  readonly bytes?: number | undefined;
}

/** What a store says of a record that it has just saved; without `savedAt` that is now. @inline */
export type SavedNow = Omit<Saved, "savedAt"> & Partial<Pick<Saved, "savedAt">>;

/** All that a State is made of, but for its observer. */
export interface StateRecord {
  /** Frozen to the bottom. */
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

/** Metadata of a run that nobody said anything of. */
export const noMetadata: Metadata = Object.freeze({});

/** Metadata that is all the run's own. */
export const noneInherited: readonly string[] = Object.freeze([]);

/** Waiting for nothing. */
export const noPauses: readonly PauseRequest[] = Object.freeze([]);

/** No answers that wait for their pauses. */
const noSignals: readonly Signal[] = Object.freeze([]);

/** No tasks done. */
const noTasks: readonly string[] = Object.freeze([]);

type Result = readonly [key: string, value: unknown];

/** Stands in the log for a result that was let go of. */
const gone = Symbol("gone");

/** What a node has done, by key. Taken at every save of a node that may do a hundred thousand things, so taking it costs nothing. */
export class Results {
  /** Only grows, so that those who know a part of it can share it. A later entry replaces an earlier one of its key. */
  readonly #log: Result[];
  readonly #length: number;

  private constructor(log: Result[]) {
    this.#log = log;
    this.#length = log.length;
  }

  static of(results: Iterable<Result>): Results {
    return new Results([...results]);
  }

  /** How many entries there are, with those that were replaced. */
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

/** How far a run is that has not begun. */
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
    signals: noSignals,
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
