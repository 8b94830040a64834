/*
 * The requests and responses of the studio's HTTP API. Types only, since the page in the browser imports them too.
 * `openapi.json` is generated from this file.
 */

import type { ClaimHolder, HistoryEntry, RunSummary } from "../checkpoint/store.js";
import type { SchemaIssue } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import type { ReportError, RunReport, StepReport } from "../report/record.js";
import type { Agent, Decision, Output, UsageTotals } from "../state/ledger.js";
import type { PauseRequest } from "../state/pauses.js";
import type { ParentLink } from "../state/record.js";
import type { AttemptRecord, ItemRecord } from "../state/steps.js";

/**
 * The HTTP API: the query or body and the response of each route. Every error response is an {@link ApiError}.
 * `GET /api/events` is a stream of {@link StudioEvent}s.
 *
 * @example
 * ```ts compile
 * import type { StudioApi } from "waymark/studio";
 *
 * type Runs = StudioApi["GET /api/runs"]["answer"];
 *
 * const response = await fetch("http://127.0.0.1:4200/api/runs?status=failed", {
 *   headers: { authorization: `Bearer ${process.env.STUDIO_TOKEN}` },
 * });
 * const { runs, next } = (await response.json()) as Runs;
 * console.log(runs.map(({ runId, error }) => [runId, error?.message]), next);
 * ```
 */
export interface StudioApi {
  /** What this studio shows, and what it can do. */
  readonly "GET /api/session": Route<StudioSession>;
  /** Runs, the most recently saved first. */
  readonly "GET /api/runs": Route<RunsPage, RunsQuery>;
  /** All about a run but its data. */
  readonly "GET /api/runs/:id": Route<RunView>;
  /** Its checkpoints, newest first. */
  readonly "GET /api/runs/:id/history": Route<RunHistory, HistoryQuery>;
  /** The State of a checkpoint; with `path` one of its values, with `q` the matches of a search. */
  readonly "GET /api/runs/:id/state": Route<StateView | ValueView | StateMatches, StateQuery>;
  /** The difference of two checkpoints. */
  readonly "GET /api/runs/:id/diff": Route<StateDifference, DifferenceQuery>;
  /** Its event log. */
  readonly "GET /api/runs/:id/log": Route<RunLog, LogQuery>;
  /** Changes of runs, as they happen. */
  readonly "GET /api/events": Route<StudioEvent, EventsQuery>;
  /** All open pauses that a person can answer or resume, oldest first. */
  readonly "GET /api/inbox": Route<Inbox>;
  /** Counts, times and costs of each graph, or of one. */
  readonly "GET /api/figures": Route<Figures, FiguresQuery>;
  /** Continues a run that no process works on. */
  readonly "POST /api/runs/:id/resume": Route<ActionResult, ResumeRequest>;
  /** Runs the failed node of a failed run again. */
  readonly "POST /api/runs/:id/retry": Route<ActionResult>;
  /** Answers a pause, and continues the run. */
  readonly "POST /api/runs/:id/answer": Route<ActionResult, AnswerRequest>;
  /** Creates a new run from a checkpoint, without running it. */
  readonly "POST /api/runs/:id/fork": Route<ActionResult, ForkRequest>;
  /** Runs again from a checkpoint, as a fork. */
  readonly "POST /api/runs/:id/replay": Route<ActionResult, ReplayRequest>;
  /** Rolls a run back to a checkpoint, without running it; its history stays. */
  readonly "POST /api/runs/:id/rollback": Route<ActionResult, RollbackRequest>;
  /** Stops a run so that it can be resumed. */
  readonly "POST /api/runs/:id/cancel": Route<ActionResult>;
  /** Removes a run with all its checkpoints and its log; answers 204. */
  readonly "DELETE /api/runs/:id": Route<null>;
}

/** A route of the {@link StudioApi}. */
export interface Route<Answer, Request = unknown> {
  /** The JSON of the response. */
  readonly answer: Answer;
  /** The query of a `GET`, the JSON body of a `POST`. */
  readonly request: Request;
}

/** The query of `GET /api/runs`. */
export interface RunsQuery {
  /** Only runs with one of these statuses; the parameter may be repeated. */
  readonly status?: readonly RunSummary["status"][];
  /** Only runs of this graph. */
  readonly graph?: string;
  /** `key=value`: a number, `true`, `false`, or text. Only runs with this metadata; may be repeated. */
  readonly metadata?: readonly string[];
  /** Only runs with this text in their id, graph, node, phase, error or metadata, ignoring case. */
  readonly q?: string;
  /** `next` of the previous page. */
  readonly cursor?: string;
  /** The maximum number of runs, up to 200; 50 by default. */
  readonly limit?: number;
}

/** The query of `GET /api/runs/:id/history`. */
export interface HistoryQuery {
  /** Only checkpoints with a lower sequence. */
  readonly before?: number;
  /** The maximum number of checkpoints, up to 10,000; 1,000 by default. */
  readonly limit?: number;
}

/** The query of `GET /api/runs/:id/state`. */
export interface StateQuery {
  /** A step, a checkpoint's id, or a node or phase that had completed; the newest checkpoint by default. */
  readonly at?: string;
  /**
   * A JSON array of the keys that lead to one value in a {@link StateView}, tags included: `["data","pages",3]`,
   * `["data","index","$map",0,1]`. The response is a {@link ValueView}.
   */
  readonly path?: string;
  /** With `path`: the first character, item or entry to return; 0 by default. */
  readonly from?: number;
  /** A text to search for in keys and values, ignoring case. The response is {@link StateMatches}. */
  readonly q?: string;
}

/** The query of `GET /api/runs/:id/diff`. */
export interface DifferenceQuery {
  /** As `at` of {@link StateQuery}. */
  readonly from: string;
  /** The same; the newest checkpoint by default. */
  readonly to?: string;
  /** The run that `to` is a checkpoint of, if it is another one. */
  readonly run?: string;
  /** Compare everything in the checkpoints, not only what nodes change. */
  readonly all?: boolean;
}

/** The query of `GET /api/runs/:id/log`. */
export interface LogQuery {
  /** `next` of the previous page; `0.0`, the start, by default. */
  readonly after?: string;
  /** The maximum number of lines, up to 1,000; 200 by default. */
  readonly limit?: number;
  /** Skips to the newest `limit` lines. */
  readonly newest?: boolean;
}

/** The query of `GET /api/events`. */
export interface EventsQuery {
  /** Only this run, checkpoint by checkpoint. */
  readonly run?: string;
}

/** The query of `GET /api/figures`. */
export interface FiguresQuery {
  /** Only this graph. */
  readonly graph?: string;
}

/**
 * A value of a State as JSON. A value that JSON has no type for is an object with one key that starts with `$`, as in a
 * checkpoint: `{ $date: "2026-01-31T…" }` (`null` for an invalid one), `{ $map: [[key, value], …] }`, `{ $set: […] }`,
 * `{ $bigint: "12" }`, `{ $bytes: ["Uint8Array", base64] }`, `{ $regexp: [source, flags, lastIndex] }`, `{ $url: "https://…" }`,
 * `{ $error: [class, name, message, stack | null, fields] }`, `{ $number: "NaN" }`, `{ $undefined: true }`,
 * `{ $sparse: [length, indexes, items] }`, `{ $type: [name, value] }` for a registered class, and `{ $object: {…} }`
 * around an object of the data that looks like one of these. `{ $large: {…} }` is the studio's own: it stands for a
 * {@link LargeValue}, which is fetched on demand. A redacted value is the text `[redacted]`.
 */
export type TaggedValue =
  | string
  | number
  | boolean
  | null
  | readonly TaggedValue[]
  | {
      /** A value that is fetched on demand. */
      readonly $large: LargeValue;
    }
  | { readonly [key: string]: TaggedValue };

/** Describes a value that is too large for the response. `path` of {@link StateQuery} fetches it. */
export interface LargeValue {
  /** What it is. */
  readonly kind: "string" | "array" | "object" | "map" | "set" | "bytes" | "other";
  /** The length of its JSON, in characters. */
  readonly size: number;
  /** How many characters, items or entries it has. */
  readonly length: number;
}

/** Something that can be done with a run. */
export type StudioAction =
  | "resume"
  | "retry"
  | "answer"
  | "fork"
  | "replay"
  | "rollback"
  | "cancel"
  | "delete";

/** What a studio shows, and what it can do. */
export interface StudioSession {
  /** The name of the store, without a password: `file:.waymark`. */
  readonly store: string;
  /** The version of waymark. */
  readonly version: string;
  /** Whether the studio is read-only. */
  readonly readOnly: boolean;
  /** The graphs of the newest runs, and those that the studio was given. */
  readonly graphs: readonly {
    /** Its name; `""` for runs without a graph. */
    readonly name: string;
    /** Whether its runs can be continued here, by its code or by a worker. */
    readonly runnable: boolean;
  }[];
  /** Whether there is an event log to read: see `GET /api/runs/:id/log`. */
  readonly log: boolean;
  /** Whether responses are redacted. */
  readonly redacted: boolean;
  /** The actions that this studio supports; `actions` of a run has those that are possible now. */
  readonly actions: readonly StudioAction[];
}

/** A run in a list. */
export interface RunRow extends RunSummary {
  /** From its start to its last save, in milliseconds. */
  readonly elapsedMs: number;
  /** Its cost, in US dollars; `null` if its checkpoint can't be read. */
  readonly costUsd: number | null;
  /** The maximum number of steps of a run of its graph; `null` if the graph has cycles or is unknown. */
  readonly maxSteps: number | null;
  /** Whether a process works on it now; `null` if the store does not know. */
  readonly live: boolean | null;
  /** The reasons of its open pauses, oldest first. */
  readonly waitsFor: readonly string[];
  /** Warnings about its newest checkpoint, for example that it is large. */
  readonly warnings: readonly string[];
  /** Why its newest checkpoint can't be read; absent if it can. The other fields are from the newest that can. */
  readonly problem?: RunProblem;
}

/** A checkpoint that can't be read. */
export interface RunProblem {
  /** `CHECKPOINT_CORRUPT`, or the code of another error. */
  readonly code: string;
  /** What is wrong, for people. */
  readonly message: string;
  /** What should be there. */
  readonly expected?: string;
  /** What is there. */
  readonly actual?: string;
  /** What to do about it. */
  readonly help?: string;
  /** The command that shows more, or repairs it. */
  readonly command?: string;
}

/** A page of runs. */
export interface RunsPage {
  /**
   * At most `limit`. A search may return fewer, even none, and still have a next page. On the first page, unless
   * filtered by graph, metadata or another status, runs of which only the id can be read come first: as failed, with a
   * `problem`, without times.
   */
  readonly runs: readonly RunRow[];
  /** How many runs a search by text has looked at for this page. */
  readonly scanned: number;
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string;
}

/** All about a run but its data. */
export interface RunView {
  /** The run itself. */
  readonly run: RunRow;
  /** Why it can't be read. If present, the fields below are empty; the history may still be available. */
  readonly problem?: RunProblem;
  /** Warnings about the checkpoint, for example that it is large, or that an older one was read. */
  readonly warnings: readonly string[];
  /** The id of the newest checkpoint; `null` if none can be read. */
  readonly checkpointId: string | null;
  /** Its sequence; 0 if there is none. */
  readonly sequence: number;
  /** When something last happened, ISO 8601. */
  readonly updatedAt: string;
  /** Why the newest checkpoint was saved: `interval`, `pause`, `failure`, `rollback`, … */
  readonly reason: string;
  /** The run that it was forked from; `null` if it was not. */
  readonly parent: ParentLink | null;
  /** The graph as it was when the run was last saved; `null` if unknown. */
  readonly topology: GraphTopology | null;
  /** How the graph saves and guards this run; empty if unknown. */
  readonly config: Readonly<Record<string, string | number | boolean>>;
  /** How often each node completed. */
  readonly visits: Readonly<Record<string, number>>;
  /** The tasks of a `dag` that have completed, oldest first. */
  readonly tasks: readonly string[];
  /** The newest 500 steps that completed, oldest first, as far as the checkpoint or the log has them. */
  readonly steps: readonly RunStep[];
  /** The node that is running, or was when the run stopped; `null` if there is none. */
  readonly unfinished: UnfinishedNode | null;
  /** How the run continues. */
  readonly next: {
    /** The node that runs next; `null` if there is none, or it is unknown. */
    readonly node: string | null;
    /** The process that works on the run now; `null` if there is none, or it is unknown. */
    readonly holder: ClaimHolder | null;
    /** The command that continues or follows the run; `null` if it has completed. */
    readonly command: string | null;
  };
  /** Its open pauses. */
  readonly pauses: readonly RunPause[];
  /** Usage, decisions, agents and outputs. */
  readonly ledger: {
    /** The usage of the whole run. */
    readonly usage: UsageTotals;
    /** The usage of each node. */
    readonly nodes: Readonly<Record<string, UsageTotals>>;
    /** The decisions, newest last. */
    readonly decisions: readonly Decision[];
    /** The agents, by id. */
    readonly agents: Readonly<Record<string, AgentView>>;
    /** The outputs, by name. */
    readonly outputs: Readonly<Record<string, OutputView>>;
    /** The confidence of the run, from 0 to 1; `null` if none was recorded. */
    readonly confidence: number | null;
  };
  /** How long nodes worked, in milliseconds, without pauses and downtime. */
  readonly workedMs: number;
  /** How often it was resumed. */
  readonly resumes: number;
  /** How often it was resumed after its process had died. */
  readonly crashes: number;
  /** Work that was lost, according to the log. */
  readonly repeated: RunReport["repeated"];
  /** The error it failed with; `null` if there is none. */
  readonly error: ReportError | null;
  /** The actions that are possible now. */
  readonly actions: readonly PossibleAction[];
}

/** An agent of a run. */
export interface AgentView extends Omit<Agent, "state"> {
  /** What it needs to continue. */
  readonly state?: TaggedValue;
}

/** An output of a run. */
export interface OutputView extends Omit<Output, "ref"> {
  /** The output, or a reference to it. */
  readonly ref: TaggedValue;
}

/** A step of a run. */
export interface RunStep extends Omit<StepReport, "outputs"> {
  /** Its items, tasks, calls of `once` and inner nodes, in the order they ended; the newest 100. */
  readonly items: readonly ItemRecord[];
  /** The attempts that failed, oldest first; the newest 20. */
  readonly failedAttempts: readonly AttemptRecord[];
  /** How often it was restarted after its process had died. */
  readonly restarts: number;
  /** The names of its outputs. */
  readonly outputs: readonly string[];
}

/** A node that has begun and not completed. */
export interface UnfinishedNode {
  /** The node. */
  readonly node: string;
  /** When it first began, ISO 8601. */
  readonly startedAt: string;
  /** How long it had worked when it was last saved, in milliseconds. */
  readonly durationMs: number;
  /** How many attempts failed for good. */
  readonly attempts: number;
  /** The attempts that failed, oldest first; the newest 20. */
  readonly failedAttempts: readonly AttemptRecord[];
  /** Its items, tasks, calls of `once` and inner nodes that have ended. */
  readonly items: readonly ItemRecord[];
  /** Of a node with a graph inside: the inner node that it is at, and so on inwards. */
  readonly inner: readonly string[];
}

/** An open pause. */
export interface RunPause extends Omit<PauseRequest, "ask" | "onTimeout"> {
  /** The node that asks. */
  readonly node: string;
  /** The question for a person. */
  readonly ask?: TaggedValue;
  /** What is merged into the data if nobody answers in time. */
  readonly onTimeout?: TaggedValue;
  /** Since when, ISO 8601. */
  readonly since: string;
}

/** An action that is possible now. */
export interface PossibleAction {
  /** `POST /api/runs/:id/<action>`, or `DELETE /api/runs/:id` for `delete`. */
  readonly action: StudioAction;
  /** The command that does the same; `""` if there is none. */
  readonly command: string;
}

/** The checkpoints of a run. */
export interface RunHistory {
  /** The checkpoints that the query selects, newest first. */
  readonly checkpoints: readonly HistoryEntry[];
  /** How many checkpoints the run has. */
  readonly total: number;
  /** Those that can't be read, as far as the store has noticed; at most 100. */
  readonly problems: readonly {
    /** Its place in the run's history. */
    readonly sequence: number;
    /** What is wrong, as reported by `verify` of the store. */
    readonly problem: string;
    /** What should be there. */
    readonly expected: string;
    /** What is there. */
    readonly actual: string;
  }[];
}

/** The State of a checkpoint as returned by `State.toJSON()`, with {@link LargeValue}s. */
export interface StateView {
  /** The run. */
  readonly runId: string;
  /** The checkpoint's id. */
  readonly checkpointId: string;
  /** Its place in the run's history. */
  readonly sequence: number;
  /** How many nodes have completed. */
  readonly step: number;
  /** The last of them; `""` before the first. */
  readonly checkpointNode: string;
  /** What the run is doing, or how it ended. */
  readonly status: RunSummary["status"];
  /** When it was saved, ISO 8601. */
  readonly savedAt: string;
  /** The data. */
  readonly data: TaggedValue;
  /** Everything else in the checkpoint. */
  readonly [field: string]: unknown;
}

/** One value of a State. */
export interface ValueView {
  /** The keys that lead to it. */
  readonly path: readonly (string | number)[];
  /** The value; of a long text, array, object, Map or Set only a part that begins at `from`, with its tag. */
  readonly value: TaggedValue;
  /** How many characters, items or entries it has. */
  readonly length: number;
  /** Where `value` begins. */
  readonly from: number;
  /** The `from` of the next part; absent at the end. */
  readonly next?: number;
}

/** The matches of a search in a State. */
export interface StateMatches {
  /** At most 200. */
  readonly matches: readonly {
    /** The keys that lead to it. */
    readonly path: readonly (string | number)[];
    /** The value. */
    readonly value: TaggedValue;
  }[];
  /** Whether there are more. */
  readonly more: boolean;
}

/** The difference of two checkpoints: only what nodes change, unless `all` is true. */
export interface StateDifference {
  /** The checkpoint that `from` names. */
  readonly from: CheckpointName;
  /** The checkpoint that `to` names. */
  readonly to: CheckpointName;
  /** At most 1,000. */
  readonly changes: readonly ValueChange[];
  /** Whether there are more. */
  readonly more: boolean;
}

/** Names a checkpoint. */
export interface CheckpointName {
  /** The run. */
  readonly runId: string;
  /** The checkpoint's id. */
  readonly checkpointId: string;
  /** Its place in the run's history. */
  readonly sequence: number;
  /** How many nodes have completed. */
  readonly step: number;
  /** The node that completed last. */
  readonly node: string;
}

/** How one path differs between two States. */
export interface ValueChange {
  /** What happened to it. */
  readonly op: "add" | "remove" | "change";
  /** Keys and indexes: `data.pages.0`. */
  readonly path: string;
  /** What was there; absent for `add`. */
  readonly before?: TaggedValue;
  /** What is there now; absent for `remove`. */
  readonly after?: TaggedValue;
}

/** A page of a run's event log. */
export interface RunLog {
  /** The lines, oldest first; each has `ts`, `event`, `source` and the event's own fields. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The `after` of the next page, which may still be empty; absent if there is no log. */
  readonly next?: string;
}

/**
 * A Server-Sent Event. Each has an id; after a lost connection, the header `Last-Event-ID` continues the stream after it,
 * without gap or duplicate. Without `run=`, there is a `run` event for each run that is new or was saved, and a `delete`
 * event for each that was deleted: through this studio, or elsewhere while it was among the 200 saved last. With `run=`,
 * there is a `checkpoint` event for each checkpoint of that run, and a `delete` event when the run is deleted.
 */
export type StudioEvent =
  | {
      /** The stream has begun. Always the first event. */
      readonly event: "ready";
      /** What it holds. */
      readonly data: Readonly<Record<string, never>>;
    }
  | {
      /** A run is new, or was saved. */
      readonly event: "run";
      /** What it holds. */
      readonly data: RunRow;
    }
  | {
      /** A run has a new checkpoint. */
      readonly event: "checkpoint";
      /** What it holds. */
      readonly data: HistoryEntry;
    }
  | {
      /** A run was deleted. */
      readonly event: "delete";
      /** What it holds. */
      readonly data: Pick<RunSummary, "runId">;
    }
  | {
      /** More has changed since the last event than is kept: fetch everything again. New events follow. */
      readonly event: "reset";
      /** What it holds. */
      readonly data: Readonly<Record<string, never>>;
    };

/** All open pauses that a person can answer or resume, oldest first. */
export interface Inbox {
  /** At most 500. */
  readonly pauses: readonly InboxPause[];
  /** Whether there are more. */
  readonly more: boolean;
}

/** An open pause of a run. */
export interface InboxPause extends RunPause {
  /** The run. */
  readonly runId: string;
  /** The graph's name. */
  readonly graph: string;
  /** The metadata of the run. */
  readonly metadata: RunSummary["metadata"];
  /** Whether it can be answered here. */
  readonly answerable: boolean;
  /** The command that answers it. */
  readonly command: string;
}

/**
 * Counts, times and costs of each graph, or of one. Counts cover the newest 10,000 runs; times and costs the newest 500 of
 * each graph.
 */
export interface Figures {
  /** One entry for each graph, by name. */
  readonly graphs: readonly GraphFigures[];
  /** Whether there are older runs that are not counted. */
  readonly more: boolean;
}

/** Counts, times and costs of a graph. */
export interface GraphFigures {
  /** The graph's name. */
  readonly graph: string;
  /** How many runs were counted. */
  readonly runs: number;
  /** How many have each status. */
  readonly statuses: Readonly<Partial<Record<RunSummary["status"], number>>>;
  /** The share of ended runs that failed, from 0 to 1; `null` if none has ended. */
  readonly failureRate: number | null;
  /** By the day on which runs started, oldest first; days without runs are omitted. */
  readonly days: readonly DayFigures[];
  /** How many runs the times and costs cover. */
  readonly sampled: number;
  /** Their cost, in US dollars. */
  readonly costUsd: number;
  /** The time from start to end of completed runs; `null` if there are none. */
  readonly elapsed: Percentiles | null;
  /** The nodes, by name. */
  readonly nodes: readonly NodeFigures[];
  /** The slowest nodes by p95; at most 5. */
  readonly slowest: readonly string[];
  /** The most expensive nodes; at most 5. */
  readonly dearest: readonly string[];
}

/** The runs that started on one day. */
export interface DayFigures {
  /** In UTC: `2026-01-31`. */
  readonly day: string;
  /** How many runs. */
  readonly runs: number;
  /** How many of them completed. */
  readonly completed: number;
  /** How many of them failed. */
  readonly failed: number;
  /** The cost of the sampled runs, in US dollars. */
  readonly costUsd: number;
}

/** Durations in milliseconds. */
export interface Percentiles {
  /** Half took no longer. */
  readonly p50Ms: number;
  /** 95 % took no longer. */
  readonly p95Ms: number;
}

/** Counts, times and costs of a node in the sampled runs. */
export interface NodeFigures extends Percentiles {
  /** The node. */
  readonly node: string;
  /** How often it completed. */
  readonly visits: number;
  /** How many runs failed in it. */
  readonly failures: number;
  /** The maximum number of attempts of a visit. */
  readonly maxAttempts: number;
  /** Its cost, in US dollars. */
  readonly costUsd: number;
  /** Tokens sent to models. */
  readonly inputTokens: number;
  /** Tokens received from models. */
  readonly outputTokens: number;
}

/** The body of `POST /api/runs/:id/resume`. */
export interface ResumeRequest {
  /** Continue after this checkpoint instead of the newest. */
  readonly at?: string;
  /** The answer to the only pause of a paused run, as a {@link TaggedValue}. */
  readonly input?: TaggedValue;
}

/** The body of `POST /api/runs/:id/answer`. */
export interface AnswerRequest {
  /** The name of the pause; optional if there is only one. */
  readonly name?: string;
  /** The answer, as a {@link TaggedValue}. */
  readonly input: TaggedValue;
}

/** The body of `POST /api/runs/:id/fork`. */
export interface ForkRequest {
  /** Fork from this checkpoint instead of the newest. */
  readonly at?: string;
  /** Merged into the data, as {@link TaggedValue}s. */
  readonly data?: { readonly [key: string]: TaggedValue };
}

/** The body of `POST /api/runs/:id/replay`: a fork that runs immediately. */
export interface ReplayRequest extends ForkRequest {
  /** The checkpoint to run from. */
  readonly at: string;
}

/** The body of `POST /api/runs/:id/rollback`. */
export interface RollbackRequest {
  /** The checkpoint to roll back to. */
  readonly at: string;
}

/** The response of a `POST`. The HTTP status is 202 if the run continues now, otherwise 200. */
export interface ActionResult {
  /** The run; the new one of a fork or replay. */
  readonly runId: string;
  /** What the run is doing, or how it ended. */
  readonly status: RunSummary["status"];
  /** How many nodes have completed. */
  readonly step: number;
}

/**
 * An error response. 400: the request is malformed. 401: no valid token. 403: the Host or Origin is not allowed, or the
 * studio is read-only. 404: no such run, checkpoint or route. 405: no such method. 408: the body took too long. 409: the
 * run has been saved since, a process works on it, or its status does not allow the action. 413: the body is too large.
 * 415: the body is not JSON. 422: the checkpoint is corrupt, or the data is invalid. 501: the studio has neither the graph
 * nor a client, or the store has no history. 500 and 503: the store failed.
 *
 * @example
 * ```ts compile
 * import type { ApiError } from "waymark/studio";
 *
 * const response = await fetch("http://127.0.0.1:4200/api/runs/monday/retry", {
 *   method: "POST",
 *   headers: { authorization: `Bearer ${process.env.STUDIO_TOKEN}` },
 * });
 * if (response.status === 409) {
 *   const { error } = (await response.json()) as ApiError;
 *   console.log(error.code, error.message);
 * }
 * ```
 */
export interface ApiError {
  /** What is wrong. */
  readonly error: {
    /** A stable code: that of a WaymarkError, or `UNAUTHORIZED`, `FORBIDDEN`, `READ_ONLY`, `NOT_FOUND`, `BAD_REQUEST`, … */
    readonly code: string;
    /** For people. */
    readonly message: string;
    /** What to do about it. */
    readonly help?: string;
    /** For a corrupt checkpoint: what should be there. */
    readonly expected?: string;
    /** For a corrupt checkpoint: what is there. */
    readonly actual?: string;
    /** For invalid data: where and why. */
    readonly issues?: readonly SchemaIssue[];
  };
}
