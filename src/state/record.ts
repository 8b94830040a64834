import type { Ledger } from "./ledger.js";
import { setKey } from "./own.js";

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
  /** Its message. */
  readonly message: string;
  /** The node that threw it. */
  readonly node: string;
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

/** Which checkpoint of which run a forked run was made from. */
export interface ParentLink {
  /** The run it was forked from. */
  readonly runId: string;
  /** The checkpoint it was forked at. */
  readonly checkpointId: string;
}

/** Something that a paused run waits for. */
export interface PauseRequest {
  /** Tells several apart; `""` for a node's only one. */
  readonly name: string;
  /** Why the run waits. */
  readonly reason: string;
  /** What is asked of a person. Where it is given, the run can't go on without input. */
  readonly ask?: unknown;
  /** The key of the data that the input becomes; without it the input is merged into the data. */
  readonly into?: string;
}

/** What a node that has not completed has done so far. */
export interface Unfinished {
  readonly node: string;
  /** What it must not do again, by key. */
  readonly results: Readonly<Record<string, unknown>>;
  /** Whether a save must walk the results; see `own.ts`. */
  readonly opaque: boolean;
}

/** What stays the same for a whole run. */
export interface Identity {
  readonly runId: string;
  readonly parent: ParentLink | undefined;
  readonly graph: GraphIdentity | undefined;
}

/** How far a run is. Changes with every completed node. */
export interface Progress {
  readonly checkpointNode: string;
  readonly timestamp: string;
  readonly step: number;
  readonly status: RunStatus;
  readonly error: RunError | undefined;
  readonly reason: string;
  readonly visits: VisitCounts;
  readonly pauses: readonly PauseRequest[];
  readonly unfinished: Unfinished | undefined;
  readonly ledger: Ledger;
}

/** How often each node completed, by node name. */
export type Visits = Readonly<Record<string, number>>;

/** The record that a State was last saved as, or loaded from. */
export interface Saved {
  /** The id of that one record. */
  readonly checkpointId: string;
  /** Its place in the run's history, from 1 up; 0 before the first save. */
  readonly sequence: number;
  /** How large it is, where the store says so. */
  readonly bytes?: number | undefined;
}

/** All that a State is made of, but for its observer. */
export interface StateFields {
  readonly data: object;
  /** See `own.ts`. */
  readonly traits: number;
  readonly identity: Identity;
  readonly progress: Progress;
  readonly saved: Saved;
}

/** Nothing saved yet. */
export const unsaved: Saved = Object.freeze({ checkpointId: "", sequence: 0, bytes: undefined });

/** Waiting for nothing. */
export const noPauses: readonly PauseRequest[] = Object.freeze([]);

/** The counts behind {@link Visits}. Taken at every save, so taking them is cheap and naming them comes later. */
export class VisitCounts {
  readonly #names: readonly string[];
  readonly #counts: readonly number[];

  constructor(names: readonly string[], counts: readonly number[]) {
    this.#names = names;
    this.#counts = counts;
  }

  byName(): Visits {
    const visits: Record<string, number> = {};
    this.#names.forEach((name, index) => {
      const count = this.#counts[index] ?? 0;
      if (count > 0) setKey(visits, name, count);
    });
    return Object.freeze(visits);
  }
}
