import { count, type Kind, name, object, oneOf, optional, runId, text, word } from "./kinds.js";
import { type Metadata, metadata } from "./metadata.js";

/** What a run is doing, or how it ended. */
export type RunStatus = "pending" | "in_progress" | "paused" | "completed" | "failed";

/** Whether a run with each status has ended, unless it is resumed. */
export const isEnd: Readonly<Record<RunStatus, boolean>> = {
  pending: false,
  in_progress: false,
  paused: false,
  completed: true,
  failed: true,
};

/** Every status a run can have. */
export const statuses: readonly RunStatus[] = Object.keys(isEnd) as RunStatus[];

/** The statuses of runs that have ended, and of those that have not. */
export const ended: readonly RunStatus[] = statuses.filter((status) => isEnd[status]);
export const unended: readonly RunStatus[] = statuses.filter((status) => !isEnd[status]);

/** The statuses of runs that have neither ended nor paused: they are at work, were left behind, or have yet to begin. */
export const underWay = ["pending", "in_progress"] as const satisfies readonly RunStatus[];

/** Whether a run has such a status. */
export function isUnderWay(status: RunStatus): status is (typeof underWay)[number] {
  return underWay.some((one) => one === status);
}

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

/** How often a run was recovered at startup without progress. */
export interface Recovery {
  /** How often. */
  readonly attempts: number;
  /** How many nodes had completed then. */
  readonly step: number;
  /** How many results its unfinished node had recorded then. */
  readonly results: number;
}

/** What a run is doing in its record. */
export const status: Kind<RunStatus> = oneOf(statuses);

export const graph = object<GraphIdentity>({ name, version: count, fingerprint: name });

/** The effective settings of a run, by name. */
export type RunConfig = Metadata;

export const config: Kind<RunConfig> = { ...metadata, userText: "fixed" };

export const parent = object<ParentLink>({ runId, checkpointId: name });

const bare = { name: word, message: text, node: name };

export const error = object<RunError>({ ...bare, stack: optional(text) });

export const bareError = object<Omit<RunError, "stack">>(bare);

export const recovery = object<Recovery>({ attempts: count, step: count, results: count });
