import type { CheckpointStore } from "../checkpoint/store.js";
import { isWaymarkError } from "../errors.js";
import { errorOf } from "../run/handles/stored.js";
import type { AnyGraph } from "../run/state-graph.js";
import { State } from "../state/state.js";
import type { ActiveRun } from "./active-run.js";
import { fromText, questionOf, type RunJob } from "./job.js";
import { type Backoff, classifyFailure, isAboutInput, type Outcome, outcomeOf } from "./outcome.js";
import { isSubmitted } from "./submitted.js";

/** What {@link advance} needs to work on the runs of a graph. */
export interface AdvanceDeps {
  /** The graph, saving to `store`. */
  readonly graph: AnyGraph;
  readonly store: CheckpointStore;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
}

/** Advances the run of a job as far as possible: to its end, to a pause, or to an error. Never rejects. */
export async function advance(job: RunJob, run: ActiveRun, deps: AdvanceDeps): Promise<Outcome> {
  try {
    return await continueRun(job, run, deps);
  } catch (error) {
    // A late answer is refused; a pause that times out without an answer ends the run.
    const isLate = isWaymarkError(error, "PAUSE_TIMEOUT") && job.data.input !== undefined;
    if (isAboutInput(error) || isLate) return askAgain(job, run, deps, error.message);
    return classifyFailure(error, run, deps.maxAttempts, deps.backoff);
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
  const { count, newest, result } = await graph.recover(runId, policy, signal);
  try {
    const state = await result;
    if (newest.status === "completed" || newest.status === "paused") {
      return outcomeOf(await graph.resume(runId, { signal }));
    }
    if (state !== undefined && state.status !== "failed") return outcomeOf(state);
    const { name, message } = state?.error ?? newest.error ?? { name: "Error", message: "" };
    return { kind: "failed", error: errorOf({ name, message }) };
  } catch (error) {
    const { kind } = classifyFailure(error, run, deps.maxAttempts, deps.backoff);
    // If this fails, the attempt counts.
    if (kind === "handed-over") await graph.endAttempt(runId, count, "taken-back").catch(() => {});
    throw error;
  }
}

/** Leaves the run waiting for its input, or for its wake-up time. */
async function askAgain(
  job: RunJob,
  run: ActiveRun,
  { store, maxAttempts, backoff }: AdvanceDeps,
  message: string,
): Promise<Outcome> {
  try {
    const outcome = outcomeOf(await store.load(run.runId));
    const wasGiven = job.data.input !== undefined && outcome.kind === "paused";
    return wasGiven ? { ...outcome, refused: message } : outcome;
  } catch (error) {
    return classifyFailure(error, run, maxAttempts, backoff);
  }
}
