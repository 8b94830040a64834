import type { Job, JobsOptions } from "bullmq";
import { progressOf } from "../state/derive.js";
import { State } from "../state/state.js";

/**
 * What a job says of its run. Texts of JSON and not JSON itself: the queue keeps JSON in its own way,
 * which knows no NUL.
 */
export interface JobData {
  /** The State that the run starts from, or whose data it starts from if the job is one of a schedule. */
  readonly state?: string;
  /** Which version of its graph the run needs at least. */
  readonly version?: number;
  /** The answer to a pause, and the place in the run that asks; see {@link questionOf}. */
  readonly input?: { readonly question: string; readonly value: string };
  /** Why the last input was refused. */
  readonly refused?: string;
  /** Why the job failed for good. */
  readonly failure?: { readonly name: string; readonly code?: string; readonly message: string };
  /** Whether it is to end without being worked on. */
  readonly cancelled?: boolean;
  /** How often the job had been started when somebody asked for one more try. */
  readonly retriedAfter?: number;
}

/** How a job ended. */
export interface JobResult {
  readonly status: "completed" | "cancelled";
}

/** The job of a run, for its whole life. */
export type RunJob = Job<JobData, JobResult, string>;

/** When to try again, the worker says: it counts only tries that got no further. */
const UNLIMITED = 1_000_000_000;

/** How the queue treats the job of a run. */
export const jobOptions: JobsOptions = {
  attempts: UNLIMITED,
  backoff: { type: "custom" },
  // What became of the run is in the store.
  removeOnComplete: true,
  removeOnFail: false,
  // A run may be tried very often while its store is away.
  stackTraceLimit: 1,
};

/** Names what a paused run waits for: another name once an answer was taken, the same one before. */
export function questionOf<D extends object>(state: State<D> | undefined): string {
  if (state === undefined) return "";
  const { step, unfinished } = progressOf(state);
  return `${step} ${unfinished?.count ?? ""} ${unfinished?.node ?? ""}`;
}

/** A value of any type that a State can hold, as text. */
export function toText(value: unknown): string {
  return JSON.stringify(State.create({ value }).toJSON());
}

/** What {@link toText} made text of. */
export function fromText(text: string): unknown {
  return State.fromJSON<{ value: unknown }>(text).data.value;
}

/** A text as every queue can keep it: Postgres knows neither the character 0 nor half a surrogate pair. */
export function toKept(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}
