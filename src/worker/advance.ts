import {
  type ConfigError,
  ExecutionError,
  errorTable,
  FatalError,
  isWaymarkError,
  RetryableError,
  type SchemaError,
} from "../errors.js";
import { random } from "../random.js";
import { errorOf } from "../run/handles/stored.js";
import type { AnyGraph } from "../run/state-graph.js";
import { progressOf } from "../state/derive.js";
import { State } from "../state/state.js";
import type { ActiveRun } from "./active-run.js";
import { fromText, questionOf, type RunJob } from "./job.js";
import type { WorkerSettings } from "./options.js";
import { isSubmitted } from "./submitted.js";

/** What {@link advance} needs to work on the runs of a graph. */
export interface AdvanceDeps extends Pick<WorkerSettings, "store" | "maxAttempts" | "backoff"> {
  /** The graph, saving to `store`. */
  readonly graph: AnyGraph;
}

/** Advances the run of a job as far as possible: to its end, to a pause, or to an error. Never rejects. */
export async function advance(job: RunJob, run: ActiveRun, deps: AdvanceDeps): Promise<Outcome> {
  try {
    return await continueRun(job, run, deps);
  } catch (error) {
    // A late answer is refused; a pause that times out without an answer ends the run.
    const isLate = isWaymarkError(error, "PAUSE_TIMEOUT") && job.data.input !== undefined;
    if (isAboutInput(error) || isLate) return askAgain(job, run, deps, error.message);
    return classifyFailure(error, run, deps);
  }
}

async function continueRun(job: RunJob, run: ActiveRun, deps: AdvanceDeps): Promise<Outcome> {
  const { graph, store } = deps;
  const { runId, signal } = run;
  const { input, retriedAfter } = job.data;
  try {
    if (input !== undefined) {
      const saved = await store.load(runId);
      // Otherwise a worker that died has already taken it.
      if (saved.status === "paused" && questionOf(saved) === input.question) {
        return outcomeOf(await graph.resume(runId, { signal, input: fromText(input.value) }));
      }
    }
    if (job.attemptsStarted <= 1 && job.data.state !== undefined)
      return await start(job, run, deps);
    const isAsked = retriedAfter === job.attemptsStarted - 1;
    if (job.data.state !== undefined) {
      const saved = await store.load(runId);
      if (isSubmitted(saved))
        return await startAgain(job, run, graph, saved, isAsked ? Infinity : deps.maxAttempts);
    }
    const isTroubled = job.attemptsMade > 0 || job.stalledCounter > 0;
    if (isTroubled && !isAsked) return await tryAgain(run, deps);
    return outcomeOf(await graph.resume(runId, { signal }));
  } catch (error) {
    if (!isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) throw error;
    // The checkpoint to continue from has been removed.
    if (job.data.state === undefined) return { kind: "failed", error };
    const first = firstState(job, runId);
    if (first.sequence > 0) return { kind: "failed", error };
    return startAgain(job, run, graph, first, deps.maxAttempts);
  }
}

/** Starts a run that was taken before but never saved. It has no checkpoint to count its attempts in. */
async function startAgain(
  { stalledCounter }: RunJob,
  { signal }: ActiveRun,
  graph: AnyGraph,
  state: State<object>,
  maxAttempts: number,
): Promise<Outcome> {
  if (stalledCounter < maxAttempts) return outcomeOf(await graph.execute(state, { signal }));
  const message = `the run was started ${stalledCounter} times, and its workers died before saving it`;
  return { kind: "failed", error: new Error(message) };
}

/** Starts a run that is most likely as it was submitted, and continues it if it is not. */
async function start(
  job: RunJob,
  { runId, signal }: ActiveRun,
  { graph, store }: AdvanceDeps,
): Promise<Outcome> {
  const first = firstState(job, runId);
  try {
    return outcomeOf(await graph.execute(first, { signal }));
  } catch (error) {
    const isConflict = isWaymarkError(error, "CHECKPOINT_CONFLICT");
    if (!(isConflict && error.expected === first.sequence)) throw error;
    const saved = await store.load(runId);
    const isNew = isSubmitted(saved) && saved.sequence !== first.sequence;
    const state = isNew ? graph.execute(saved, { signal }) : graph.resume(runId, { signal });
    return outcomeOf(await state);
  }
}

function firstState({ data, repeatJobKey }: RunJob, runId: string): State<object> {
  const state = State.fromJSON<object>(data.state ?? "");
  return repeatJobKey === undefined ? state : State.create(state.data, { runId });
}

/** Continues a run that failed or whose worker died, unless its attempts are used up. */
async function tryAgain(run: ActiveRun, deps: AdvanceDeps): Promise<Outcome> {
  const { runId, signal } = run;
  const { graph } = deps;
  // The first attempt is not counted, since counting costs a save.
  const policy = { maxAttempts: deps.maxAttempts - 1, fallsBack: false, leavesForks: false };
  const { newest, result, end } = await graph.recover(runId, policy, signal);
  try {
    const state = await result;
    if (newest.status === "completed" || newest.status === "paused") {
      return outcomeOf(await graph.resume(runId, { signal }));
    }
    if (state.status !== "failed") return outcomeOf(state);
    const { name, message } = state.error ?? { name: "Error", message: "" };
    return { kind: "failed", error: errorOf({ name, message }) };
  } catch (error) {
    const { kind } = classifyFailure(error, run, deps);
    if (kind === "handed-over") await end("taken-back");
    throw error;
  }
}

/** Leaves the run waiting for its input, or for its wake-up time. */
async function askAgain(
  job: RunJob,
  run: ActiveRun,
  deps: AdvanceDeps,
  message: string,
): Promise<Outcome> {
  try {
    const outcome = outcomeOf(await deps.store.load(run.runId));
    const wasGiven = job.data.input !== undefined && outcome.kind === "paused";
    return wasGiven ? { ...outcome, refused: message } : outcome;
  } catch (error) {
    return classifyFailure(error, run, deps);
  }
}

/** What to do with a job after its run has stopped here. */
export type Outcome =
  | { readonly kind: "completed" | "cancelled" | "handed-over" | "elsewhere" | "newer" }
  /** The claim was lost, to another worker, or because this one hung or was cut off. */
  | { readonly kind: "lost" }
  /** It waits for a time, or for input; `refused` is the reason why its input was refused. */
  | { readonly kind: "paused"; readonly until?: number; readonly refused?: string }
  /** Without `retryAfter`, in milliseconds, it has failed for good. */
  | { readonly kind: "failed"; readonly error: unknown; readonly retryAfter?: number };

/** The outcome of a run that stopped without an error. */
export function outcomeOf<D extends object>(state: State<D>): Outcome {
  if (state.status !== "paused") return { kind: "completed" };
  const moments = state.pauses.flatMap(({ until, deadline }) => [until, deadline]);
  const times = moments.flatMap((moment) => (moment === undefined ? [] : [Date.parse(moment)]));
  return times.length === 0 ? { kind: "paused" } : { kind: "paused", until: Math.min(...times) };
}

/** Whether a retry would be pointless. */
function isPermanent(error: unknown): boolean {
  if (error instanceof FatalError) return true;
  return isWaymarkError(error) && errorTable[error.code]?.permanent === true;
}

/** The longest delay that an error may request, in milliseconds. */
const MAX_WAIT = 24 * 60 * 60 * 1000;

/** The longest delay before a failed run is retried, in milliseconds. */
const LONGEST_BACKOFF = 30_000;

/** The outcome of a run that stopped with an error. */
export function classifyFailure(
  error: unknown,
  run: Pick<ActiveRun, "why" | "isLost">,
  { maxAttempts, backoff }: Pick<AdvanceDeps, "maxAttempts" | "backoff">,
): Outcome {
  if (run.isLost) return { kind: "lost" };
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) return { kind: "elsewhere" };
  if (run.why === "cancel") return { kind: "cancelled" };
  if (isWaymarkError(error, "ABORTED")) return { kind: "handed-over" };
  if (isWaymarkError(error, "MIGRATION") && error.from > error.to) return { kind: "newer" };
  const cause: unknown = error instanceof ExecutionError ? error.cause : undefined;
  if (isPermanent(error) || isPermanent(cause)) return { kind: "failed", error };
  const tries = triesOf(error);
  if (tries >= maxAttempts) return { kind: "failed", error };
  const wait = Math.min(backoff * 2 ** Math.max(tries - 1, 0), LONGEST_BACKOFF);
  const asked = cause instanceof RetryableError ? cause.retryAfter : undefined;
  const retryAfter = Math.ceil(asked ?? wait * (0.75 + random() / 4));
  return { kind: "failed", error, retryAfter: Math.min(retryAfter, MAX_WAIT) };
}

/**
 * How often the run was tried at this point. Failures that are not the run's fault, such as an unreachable store, don't
 * count.
 */
function triesOf(error: unknown): number {
  if (!(error instanceof ExecutionError)) return 0;
  const { state } = error;
  return state instanceof State ? (progressOf(state).recovery?.attempts ?? 0) + 1 : 1;
}

/** Whether an error means that a paused run got no input, or invalid input. */
function isAboutInput(error: unknown): error is ConfigError | SchemaError {
  if (isWaymarkError(error, "SCHEMA")) return isInput(error.subject);
  return isWaymarkError(error, "CONFIG") && isInput(error.option);
}

function isInput(name: string): boolean {
  return name === "input" || name.startsWith("input.");
}
