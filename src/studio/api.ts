/*
 * What the studio's HTTP API answers and takes. Only types, and only those of the core: the page in the
 * browser imports them as well. `openapi.json` is generated from this file.
 */

import type { ClaimHolder, HistoryEntry, RunSummary } from "../checkpoint/store.js";
import type { SchemaIssue } from "../errors.js";
import type { GraphTopology } from "../graph/description.js";
import type { ReportError, RunReport, StepReport } from "../report/record.js";
import type { Agent, Decision, Output, UsageTotals } from "../state/ledger.js";
import type { ParentLink, PauseRequest } from "../state/record.js";
import type { AttemptRecord, ItemRecord } from "../state/steps.js";

/**
 * The HTTP API: the query, the body and the answer of each route. Every answer that is no success is an {@link ApiError}.
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
  /** What this studio looks at, and what it may do. */
  readonly "GET /api/session": Route<StudioSession>;
  /** Runs, the most recently saved first. */
  readonly "GET /api/runs": Route<RunsPage, RunsQuery>;
  /** All about a run but its data. */
  readonly "GET /api/runs/:id": Route<RunView>;
  /** Its checkpoints, newest first. */
  readonly "GET /api/runs/:id/history": Route<RunHistory, HistoryQuery>;
  /** The State of a checkpoint; with `path` one value of it, with `q` where a text is in it. */
  readonly "GET /api/runs/:id/state": Route<StateView | ValueView | StateMatches, StateQuery>;
  /** What is different between two checkpoints. */
  readonly "GET /api/runs/:id/diff": Route<StateDifference, DifferenceQuery>;
  /** Its event log. */
  readonly "GET /api/runs/:id/log": Route<RunLog, LogQuery>;
  /** Changes of runs, as they happen. */
  readonly "GET /api/events": Route<StudioEvent, EventsQuery>;
  /** All open pauses that a person can end, oldest first. */
  readonly "GET /api/inbox": Route<Inbox>;
  /** What the runs of each graph, or of one, came to. */
  readonly "GET /api/figures": Route<Figures, FiguresQuery>;
  /** Continues a run that is not at work. */
  readonly "POST /api/runs/:id/resume": Route<ActionResult, ResumeRequest>;
  /** Runs the failed node of a failed run again. */
  readonly "POST /api/runs/:id/retry": Route<ActionResult>;
  /** Answers a pause, and continues the run. */
  readonly "POST /api/runs/:id/answer": Route<ActionResult, AnswerRequest>;
  /** Makes a new run from a checkpoint; nothing runs. */
  readonly "POST /api/runs/:id/fork": Route<ActionResult, ForkRequest>;
  /** Runs again from a checkpoint, as a fork. */
  readonly "POST /api/runs/:id/replay": Route<ActionResult, ReplayRequest>;
  /** Sets a run back to a checkpoint; nothing runs, and its history stays. */
  readonly "POST /api/runs/:id/rollback": Route<ActionResult, RollbackRequest>;
  /** Stops a run so that it can be resumed. */
  readonly "POST /api/runs/:id/cancel": Route<ActionResult>;
  /** Removes a run with all its checkpoints and its log; answers 204. */
  readonly "DELETE /api/runs/:id": Route<null>;
}

/** A route of the {@link StudioApi}. */
export interface Route<Answer, Request = unknown> {
  /** The JSON that it answers. */
  readonly answer: Answer;
  /** The query of a `GET`, the JSON body of a `POST`. */
  readonly request: Request;
}

/** The query of `GET /api/runs`. */
export interface RunsQuery {
  /** Only runs of this status, or of one of these: the parameter may be repeated. */
  readonly status?: readonly RunSummary["status"][];
  /** Only runs of this graph. */
  readonly graph?: string;
  /** `key=value`: a number, `true`, `false`, or text. Only runs with this metadata; may be repeated. */
  readonly metadata?: readonly string[];
  /** Only runs with this text in their id, graph, node, phase, error or metadata, upper and lower case alike. */
  readonly q?: string;
  /** `next` of the page before. */
  readonly cursor?: string;
  /** At most so many, up to 200; 50 by default. */
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
   * `["data","index","$map",0,1]`. The answer is a {@link ValueView}.
   */
  readonly path?: string;
  /** With `path`: the first character, item or entry to give; 0 by default. */
  readonly from?: number;
  /** A text to search for in keys and values, upper and lower case alike. The answer is {@link StateMatches}. */
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
  /** Compare all that checkpoints hold, and not only what nodes make. */
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
 * A value of a State as JSON. What JSON has no type for is an object with one key that starts with `$`, as in a
 * checkpoint: `{ $date: "2026-01-31T…" }` (`null` for an invalid one), `{ $map: [[key, value], …] }`, `{ $set: […] }`,
 * `{ $bigint: "12" }`, `{ $bytes: ["Uint8Array", base64] }`, `{ $regexp: [source, flags, lastIndex] }`, `{ $url: "https://…" }`,
 * `{ $error: [class, name, message, stack | null, fields] }`, `{ $number: "NaN" }`, `{ $undefined: true }`,
 * `{ $sparse: [length, indexes, items] }`, `{ $type: [name, value] }` for a registered class, and `{ $object: {…} }`
 * around an object of the user's that looks like one of these. One is the studio's own: `{ $large: {…} }`,
 * see {@link LargeValue}, stands for what is fetched on demand. What is redacted is the text `[redacted]`.
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

/** What `$large` holds: a value that is too large for the answer. `path` of {@link StateQuery} fetches it. */
export interface LargeValue {
  /** What it is. */
  readonly kind: "string" | "array" | "object" | "map" | "set" | "bytes" | "other";
  /** How many characters its JSON has. */
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

/** What a studio looks at, and what it may do. */
export interface StudioSession {
  /** The store, as people name it: `file:.waymark`; no password is in it. */
  readonly store: string;
  /** The version of waymark. */
  readonly version: string;
  /** Whether nothing can be done here, only looked at. */
  readonly readOnly: boolean;
  /** The graphs that the store's newest runs are of, and those that were given. */
  readonly graphs: readonly {
    /** Its name; `""` for runs of no graph. */
    readonly name: string;
    /** Whether its runs can be continued from here: by its code, or by a worker. */
    readonly runnable: boolean;
  }[];
  /** Whether there is an event log to read: see `GET /api/runs/:id/log`. */
  readonly log: boolean;
  /** Whether something is removed from all answers. */
  readonly redacted: boolean;
  /** What can be done in principle; a run's own `actions` say what can be done with it now. */
  readonly actions: readonly StudioAction[];
}

/** A run in a list. */
export interface RunRow extends RunSummary {
  /** From its start to its last save, in milliseconds. */
  readonly elapsedMs: number;
  /** What it has cost, in US dollars; `null` if its checkpoint can't be read. */
  readonly costUsd: number | null;
  /** How many steps a run of its graph has at most; `null` if it has cycles, or nobody knows. */
  readonly maxSteps: number | null;
  /** Whether a process works on it now; `null` if the store can't say. */
  readonly live: boolean | null;
  /** What a paused run waits for, oldest first: the reasons of its pauses. */
  readonly waitsFor: readonly string[];
  /** What there is to know of its newest checkpoint, although it can be read: that it is large. */
  readonly warnings: readonly string[];
  /** Why its newest checkpoint can't be read; absent if it can. The rest is of the newest that can. */
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
   * At most `limit`; fewer, even none, where a search has more to look through. Where the list ends, and no filter is
   * set, runs follow of which the store knows no more than their id, with a `problem`, without times and as failed; not
   * if the store has more than 2,000 runs.
   */
  readonly runs: readonly RunRow[];
  /** The `cursor` of the next page; absent at the end. */
  readonly next?: string;
}

/** All about a run but its data. */
export interface RunView {
  /** The run itself. */
  readonly run: RunRow;
  /** Why it can't be read. If it is there, all below is empty; its history may still be there. */
  readonly problem?: RunProblem;
  /** What was noticed while it was read: that it was read from an older checkpoint, that it is large. */
  readonly warnings: readonly string[];
  /** The newest checkpoint; `null` if there is none that can be read. */
  readonly checkpointId: string | null;
  /** Its sequence; 0 if there is none. */
  readonly sequence: number;
  /** When something last happened, ISO 8601. */
  readonly updatedAt: string;
  /** Why the newest checkpoint was saved: `interval`, `pause`, `failure`, `rollback`, … */
  readonly reason: string;
  /** The run that it was forked from; `null` if it was not. */
  readonly parent: ParentLink | null;
  /** The graph as it was when the run was last saved; `null` if nobody knows it. */
  readonly topology: GraphTopology | null;
  /** How often each node completed. */
  readonly visits: Readonly<Record<string, number>>;
  /** The tasks of a `dag` that have completed, oldest first. */
  readonly tasks: readonly string[];
  /** The newest 500 steps that completed, oldest first, as far as the checkpoint or the log has them. */
  readonly steps: readonly RunStep[];
  /** The node that is at work, or was when the run stopped; `null` if none is. */
  readonly unfinished: UnfinishedNode | null;
  /** How the run continues. */
  readonly next: {
    /** The node that runs next; `null` if none does, or nobody knows. */
    readonly node: string | null;
    /** Who works on the run now; `null` if nobody does, or the store can't say. */
    readonly holder: ClaimHolder | null;
    /** The command that continues or follows it; `null` when there is nothing to do. */
    readonly command: string | null;
  };
  /** What it waits for. */
  readonly pauses: readonly RunPause[];
  /** What was used, decided and made. */
  readonly ledger: {
    /** Of the whole run. */
    readonly usage: UsageTotals;
    /** Of each node. */
    readonly nodes: Readonly<Record<string, UsageTotals>>;
    /** Newest last. */
    readonly decisions: readonly Decision[];
    /** By id. */
    readonly agents: Readonly<Record<string, AgentView>>;
    /** By name. */
    readonly outputs: Readonly<Record<string, OutputView>>;
    /** How sure the run is, from 0 to 1; `null` when nobody said. */
    readonly confidence: number | null;
  };
  /** How long nodes worked, in milliseconds, without pauses and downtime. */
  readonly workedMs: number;
  /** How often it was resumed, as far as a log knows. */
  readonly resumes: number;
  /** How often it was resumed after its process had died. */
  readonly crashes: number;
  /** Work that was done and lost, as far as a log knows. */
  readonly repeated: RunReport["repeated"];
  /** What made it end early; `null` if nothing did. */
  readonly error: ReportError | null;
  /** What can be done with it now. */
  readonly actions: readonly PossibleAction[];
}

/** What is known of an agent. */
export interface AgentView extends Omit<Agent, "state"> {
  /** What it needs to continue. */
  readonly state?: TaggedValue;
}

/** Something that a run made. */
export interface OutputView extends Omit<Output, "ref"> {
  /** Where it is, or what it is. */
  readonly ref: TaggedValue;
}

/** A step of a run. */
export interface RunStep extends Omit<StepReport, "outputs"> {
  /** Its items, tasks, calls of `once` and inner nodes, in the order they ended; the newest 100. */
  readonly items: readonly ItemRecord[];
  /** The attempts that failed, oldest first; the newest 20. */
  readonly failedAttempts: readonly AttemptRecord[];
  /** How often it was begun again after its process had died. */
  readonly restarts: number;
  /** The names of the outputs that it made. */
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

/** Something that a run waits for. */
export interface RunPause extends Omit<PauseRequest, "ask" | "onTimeout"> {
  /** The node that asks. */
  readonly node: string;
  /** What is asked of a person. */
  readonly ask?: TaggedValue;
  /** What is merged into the data if nobody answers in time. */
  readonly onTimeout?: TaggedValue;
  /** Since when, ISO 8601. */
  readonly since: string;
}

/** What can be done with a run. */
export interface PossibleAction {
  /** `POST /api/runs/:id/<action>`, or `DELETE /api/runs/:id` for `delete`. */
  readonly action: StudioAction;
  /** The command that does the same; `""` if none does. */
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
    /** What is wrong, as `verify` of a store says it. */
    readonly problem: string;
    /** What should be there. */
    readonly expected: string;
    /** What is there. */
    readonly actual: string;
  }[];
}

/** The State of a checkpoint as `State.toJSON()` gives it, with {@link LargeValue}s. */
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
  /** Everything else that the checkpoint holds. */
  readonly [field: string]: unknown;
}

/** One value of a State. */
export interface ValueView {
  /** The keys. */
  readonly path: readonly (string | number)[];
  /** The value; of a long text, array, object, Map or Set only what comes from `from` on, with its tag. */
  readonly value: TaggedValue;
  /** How many characters, items or entries it has. */
  readonly length: number;
  /** The first of them that `value` has. */
  readonly from: number;
  /** The `from` that continues; absent at the end. */
  readonly next?: number;
}

/** Where a text is in a State. */
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

/** What is different between two checkpoints; only what nodes make, unless `all` is true. */
export interface StateDifference {
  /** The older one, or that of `:id`. */
  readonly from: CheckpointName;
  /** The other. */
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

/** What is at one path in two States. */
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
  /** Oldest first; each has `ts`, `event`, `source` and what the event holds. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
  /** The `after` of the next page, which may be empty as yet; absent if there is no log. */
  readonly next?: string;
}

/**
 * A Server-Sent Event. Each has an id; after a lost connection the header `Last-Event-ID`
 * continues behind it, with no gap and no duplicate. Without `run` there is a `run` event for each run that is new or was
 * saved, and a `delete` for one that was deleted: through this studio, or elsewhere while it was one of the 200 saved last.
 * With `run=` there is a `checkpoint` event for each checkpoint of that run, and a `delete` when it is gone.
 */
export type StudioEvent =
  | {
      /** The stream has begun: always the first. What happens from here on follows. */
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
      /** A run is gone. */
      readonly event: "delete";
      /** What it holds. */
      readonly data: Pick<RunSummary, "runId">;
    }
  | {
      /** More has changed since the last event than is kept: fetch all again. New events follow. */
      readonly event: "reset";
      /** What it holds. */
      readonly data: Readonly<Record<string, never>>;
    };

/** All open pauses that a person can end, oldest first. */
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
  /** What the run belongs to. */
  readonly metadata: RunSummary["metadata"];
  /** Whether it can be answered here. */
  readonly answerable: boolean;
  /** The command that answers it. */
  readonly command: string;
}

/**
 * What the runs of each graph, or of one, came to. Counts are of the newest 10,000 runs; times and costs of
 * the newest 500 of each graph.
 */
export interface Figures {
  /** One entry for each graph, by name. */
  readonly graphs: readonly GraphFigures[];
  /** Whether there are older runs that are not counted. */
  readonly more: boolean;
}

/** What the runs of a graph came to. */
export interface GraphFigures {
  /** The graph's name. */
  readonly graph: string;
  /** How many runs were counted. */
  readonly runs: number;
  /** How many have each status. */
  readonly statuses: Readonly<Partial<Record<RunSummary["status"], number>>>;
  /** Of the runs that ended, the part that failed, from 0 to 1; `null` if none has ended. */
  readonly failureRate: number | null;
  /** By the day on which runs started, oldest first; days without runs are not there. */
  readonly days: readonly DayFigures[];
  /** Of how many runs the times and costs are. */
  readonly sampled: number;
  /** What those cost, in US dollars. */
  readonly costUsd: number;
  /** What a run took from start to end, of those that completed; `null` if none did. */
  readonly elapsed: Percentiles | null;
  /** The nodes, by name. */
  readonly nodes: readonly NodeFigures[];
  /** The nodes that worked longest, by their p95; at most 5. */
  readonly slowest: readonly string[];
  /** The nodes that cost most; at most 5. */
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
  /** Of the runs that were sampled. */
  readonly costUsd: number;
}

/** Durations in milliseconds. */
export interface Percentiles {
  /** Half took no longer. */
  readonly p50Ms: number;
  /** 95 % took no longer. */
  readonly p95Ms: number;
}

/** What a node did in the runs that were sampled. */
export interface NodeFigures extends Percentiles {
  /** The node that completed last. */
  readonly node: string;
  /** How often it completed. */
  readonly visits: number;
  /** How many of the runs are failed in it. */
  readonly failures: number;
  /** The most attempts that a visit took. */
  readonly maxAttempts: number;
  /** What it cost, in US dollars. */
  readonly costUsd: number;
  /** Tokens sent to models. */
  readonly inputTokens: number;
  /** Tokens that came back. */
  readonly outputTokens: number;
}

/** The body of `POST /api/runs/:id/resume`: continues a run that is not at work. */
export interface ResumeRequest {
  /** Continue after this checkpoint instead of the newest. */
  readonly at?: string;
  /** The answer to the only pause of a paused run, tagged as {@link TaggedValue} says. */
  readonly input?: TaggedValue;
}

/** The body of `POST /api/runs/:id/answer`: answers a pause. */
export interface AnswerRequest {
  /** The name of the pause; may be omitted for an only one. */
  readonly name?: string;
  /** The answer, tagged as {@link TaggedValue} says. */
  readonly input: TaggedValue;
}

/** The body of `POST /api/runs/:id/fork`: makes a new run; nothing runs. */
export interface ForkRequest {
  /** From this checkpoint instead of the newest. */
  readonly at?: string;
  /** Merged into the data, tagged as {@link TaggedValue} says. */
  readonly data?: { readonly [key: string]: TaggedValue };
}

/** The body of `POST /api/runs/:id/replay`: a fork that runs at once. */
export interface ReplayRequest extends ForkRequest {
  /** The checkpoint to run from. */
  readonly at: string;
}

/** The body of `POST /api/runs/:id/rollback`: sets the run back; nothing runs, and its history stays. */
export interface RollbackRequest {
  /** The checkpoint to go back to. */
  readonly at: string;
}

/** What a `POST` answers. The status is 202 where the run is at work now, else 200. */
export interface ActionResult {
  /** The run: the new one of a fork or replay. */
  readonly runId: string;
  /** What the run is doing, or how it ended. */
  readonly status: RunSummary["status"];
  /** How many nodes have completed. */
  readonly step: number;
}

/**
 * Every answer that is not a success. 400: the request is malformed. 401: no token. 403: the Host or Origin is not allowed,
 * or the studio is read-only. 404: no such run, checkpoint or route. 405: no such method. 409: the run is elsewhere by now, a process works
 * on it, or its status does not allow it. 413: the body is too large. 422: the checkpoint is corrupt, or data is refused.
 * 501: the studio was not given what it takes, or the store keeps no history. 500 and 503: the store failed.
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
    /** Of a corrupt checkpoint: what should be there. */
    readonly expected?: string;
    /** Of a corrupt checkpoint: what is there. */
    readonly actual?: string;
    /** Of data that is refused: where and why. */
    readonly issues?: readonly SchemaIssue[];
  };
}
