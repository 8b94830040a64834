import { waitsForResume } from "../checkpoint/fork.js";
import type { CheckpointStore } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { isWaymarkError } from "../errors.js";
import { withProgress, withRecord } from "../state/derive.js";
import { isReason } from "../state/fields.js";
import type { Reason } from "../state/reasons.js";
import type { RunStatus } from "../state/record.js";
import { recordOf, State } from "../state/state.js";
import { type JobData, type JobQueue, jobIdOf } from "./job.js";

/** The latest time at which a State can start. */
const LATEST = Date.UTC(9999, 11, 31);

/** The fingerprint of a graph whose nodes the client does not have; no store has a graph with it. */
const UNKNOWN = "unknown";

/** The reason in the newest checkpoint of a run that is put back. */
const reasons: Readonly<Record<RunStatus, Reason>> = {
  pending: "submit",
  in_progress: "abort",
  paused: "pause",
  failed: "failure",
  completed: "complete",
};

/** The first State of a submitted run. It starts when its delay is over. */
export function submittedState<D extends object>(
  data: D,
  graph: { readonly name: string; readonly version: number | undefined },
  { runId, delay = 0 }: { readonly runId?: string; readonly delay?: number },
): State<D> {
  const state = State.create(data, runId === undefined ? {} : { runId });
  const { name, version = 0 } = graph;
  const startedAt =
    delay === 0 ? state.startedAt : new Date(Math.min(now() + delay, LATEST)).toISOString();
  const identity = {
    ...recordOf(state).identity,
    graph: Object.freeze({ name, version, fingerprint: UNKNOWN }),
    startedAt,
  };
  return withProgress(withRecord(state, { identity }), { reason: reasons.pending });
}

/** Whether a run was submitted, and no worker has begun it. */
export function isSubmitted<D extends object>(state: State<D>): boolean {
  const hasBegun = state.status !== "pending" || state.checkpointNode !== "";
  return !hasBegun && !waitsForResume(state);
}

/** The job data of a run that is in the store. */
export function jobOf<D extends object>(saved: State<D>): JobData {
  const version = saved.graph?.version ?? 0;
  return {
    ...(isSubmitted(saved) && { state: JSON.stringify(saved.toJSON()) }),
    ...(version > 0 && { version }),
  };
}

/** Saves the first State of a run; returns the stored one if the run exists already. */
async function saveFirst<D extends object>(
  store: CheckpointStore,
  state: State<D>,
): Promise<{ readonly saved: State<D>; readonly isNew: boolean }> {
  try {
    return { saved: await store.save(state), isNew: true };
  } catch (error) {
    if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
    return { saved: await store.load<D>(state.runId), isNew: false };
  }
}

/** Saves a new run and adds it to the queue; returns the id of its job. */
export async function submitRun<D extends object>(
  store: CheckpointStore,
  queue: Pick<JobQueue, "add">,
  graph: string,
  state: State<D>,
  options: Parameters<JobQueue["add"]>[2],
): Promise<string> {
  const jobId = jobIdOf(state.runId);
  const { saved, isNew } = await saveFirst(store, state);
  const job = await queue.add(graph, jobOf(saved), { ...options, jobId });
  // The queue already has a run with the same deduplication id.
  if (isNew && job.id !== jobId) await store.delete(state.runId);
  return String(job.id);
}

/** Whether a run was cancelled, and has not been put back since. */
export function isCancelled<D extends object>({ reason }: State<D>): boolean {
  return isReason(reason, "cancel");
}

/** A run that is not worked on until it is put back. */
export function cancelled<D extends object>(state: State<D>): State<D> {
  return withProgress(state, { reason: "cancel" });
}

/** The opposite of {@link cancelled}. */
export function putBack<D extends object>(state: State<D>): State<D> {
  return withProgress(state, { reason: reasons[state.status] });
}
