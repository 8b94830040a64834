import type { Job, JobState, JobsOptions } from "bullmq";
import { ConfigError, show } from "../errors.js";
import { progressOf } from "../state/derive.js";
import { State } from "../state/state.js";

/**
 * The data of a run's job. Values are JSON text rather than JSON: the queue's own JSON can't hold the character 0.
 */
export interface JobData {
  /** The State that the run starts from; for a scheduled job, the State whose data it starts from. */
  readonly state?: string;
  /** The lowest version of the graph that can work on the run. */
  readonly version?: number;
  /** The answer to a pause, and which pause it answers; see {@link questionOf}. */
  readonly input?: { readonly question: string; readonly value: string };
  /** Why the last input was refused. */
  readonly refused?: string;
  /** Why the job failed for good. */
  readonly failure?: Failure;
  /** Whether to end it without any work. */
  readonly cancelled?: boolean;
  /** How often the job had been started when a retry was requested. */
  readonly retriedAfter?: number;
}

/** An error, in text that every queue can hold. */
export interface Failure {
  readonly name: string;
  readonly message: string;
  /** If it is an error of waymark. */
  readonly code?: string;
  /** The fields of its class as JSON. */
  readonly fields?: string;
}

/** Where BullMQ says that a job is: `unknown` if it is not in the queue, as after it was completed. */
export type JobPlace = JobState | "unknown";

/** How a job ended. */
export interface JobResult {
  readonly status: "completed" | "cancelled";
}

/** The job of a run, for its whole life, as far as a worker needs it. */
export type RunJob = Pick<
  Job<JobData, JobResult, string>,
  | "id"
  | "data"
  | "attemptsStarted"
  | "attemptsMade"
  | "stalledCounter"
  | "repeatJobKey"
  | "updateData"
  | "moveToDelayed"
> & { moveToWait(token: string): Promise<unknown> };

/** A queue, as far as runs are put there, found and woken up. */
export interface JobQueue {
  add(name: string, data: JobData, options: JobsOptions): Promise<{ readonly id?: string }>;
  getJob(
    jobId: string,
  ): Promise<Pick<Job<JobData, JobResult, string>, "data" | "promote"> | undefined>;
  getJobState(jobId: string): Promise<JobPlace>;
}

/** The worker decides when to retry: it counts only attempts that made no progress. */
const UNLIMITED = 1_000_000_000;

/** How the queue treats the job of a run. */
export const jobOptions: JobsOptions = {
  attempts: UNLIMITED,
  backoff: { type: "custom" },
  // The run's outcome is in the store.
  removeOnComplete: true,
  removeOnFail: false,
  // A run may be retried very often while its store is unreachable.
  stackTraceLimit: 1,
};

/** Identifies what a paused run waits for: changes as soon as an answer is taken. */
export function questionOf<D extends object>(state: State<D> | undefined): string {
  if (state === undefined) return "";
  const { step, unfinished } = progressOf(state);
  return `${step} ${unfinished?.count ?? ""} ${unfinished?.node ?? ""}`;
}

/** Encodes any value that a State can hold as text. */
export function toText(value: unknown): string {
  return JSON.stringify(State.create({ value }).toJSON());
}

/** Decodes what {@link toText} encoded. */
export function fromText(text: string): unknown {
  return State.fromJSON<{ value: unknown }>(text).data.value;
}

/** Makes a text storable in every queue: Postgres accepts neither the character 0 nor half a surrogate pair. */
export function toKept(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}

/** The queue's name for a graph. A queue name has no colon, and on Postgres no character 0. */
export function queueName(graph: string): string {
  if (graph.includes("\0")) {
    throw new ConfigError("graph", `has the character 0 in its name, ${show(graph)}`);
  }
  try {
    return `waymark-${encodeURIComponent(graph)}`;
  } catch {
    throw new ConfigError("graph", `has half a surrogate pair in its name, ${show(graph)}`);
  }
}

const ESCAPED = "~";
/** The id of a scheduled job. */
const SCHEDULED = /^repeat:[^:]+:\d+$/;
const NUMBER = /^-?\d+$/;

/** The id of a run's job: the run's id, escaped where the queue would reject it. No two runs share one. */
export function jobIdOf(runId: string): string {
  if (SCHEDULED.test(runId)) return runId;
  const isRefused = runId.includes(":") || NUMBER.test(runId) || runId.startsWith(ESCAPED);
  if (!isRefused) return runId;
  return ESCAPED + runId.replaceAll("%", "%25").replaceAll(":", "%3A");
}

/** The run of a job. */
export function runIdOf(jobId: string): string {
  if (!jobId.startsWith(ESCAPED)) return jobId;
  return jobId.slice(ESCAPED.length).replaceAll("%3A", ":").replaceAll("%25", "%");
}
