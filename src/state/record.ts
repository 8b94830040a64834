import { isoNow } from "../clock.js";
import { Ledger } from "./ledger.js";
import { setKey } from "./shape.js";

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
  /** Where it is a breakpoint of the config, that takes no input: before the node or after it. */
  readonly breakpoint?: "before" | "after";
  /** When the run is to go on by itself, ISO 8601, where it only waits for that. */
  readonly until?: string;
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
  /** Whether a save must walk the results; see `traits.ts`. */
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
  readonly recovery: Recovery | undefined;
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
  /** See `traits.ts`. */
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
    timestamp: isoNow(),
    step: 0,
    status: "pending",
    error: undefined,
    reason: "",
    visits: new VisitCounts([], []),
    pauses: noPauses,
    unfinished: undefined,
    ledger: Ledger.empty,
    recovery: undefined,
  };
}
