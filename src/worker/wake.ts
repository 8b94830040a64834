import type { CheckpointStore } from "../checkpoint/store.js";
import { now, sleep } from "../clock.js";
import { isWaymarkError, show } from "../errors.js";
import { loadIfAny } from "../run/handles/stored.js";
import { changeRun, toAnswer, withAnswer } from "../run/pauses/pauses.js";
import type { State } from "../state/state.js";
import { queueError } from "./backend.js";
import { type JobQueue, jobIdOf, questionOf } from "./job.js";

/** The interval at which to check a run that is changing hands, in milliseconds. */
export const SOON = 50;
/** How often to retry while another process holds the run. */
export const MOST_LOOKS = 20;
/** How long a worker may take to release a paused run, in milliseconds. */
const LONGEST_RELEASE = 60_000;

/** A run, and where to find it. */
export interface WhereRun {
  readonly runId: string;
  readonly store: CheckpointStore;
  readonly queue: Pick<JobQueue, "getJob" | "getJobState">;
}

/** Hands a waiting run to a worker. The one that has it may be about to release it. */
export async function wakeUp({ runId, store, queue }: WhereRun, question: string): Promise<void> {
  const jobId = jobIdOf(runId);
  for (const end = now() + LONGEST_RELEASE; ; ) {
    if (await promote(queue, jobId)) return;
    const where = await queue.getJobState(jobId);
    if (where !== "active" && where !== "delayed") return;
    const saved = await loadIfAny(store, runId);
    if (saved?.status !== "paused" || questionOf(saved) !== question) return;
    if (now() > end) {
      const what = `run ${show(runId)} has its answer, but its worker does not release it`;
      throw queueError(`${what}: call resume() once another worker has taken it over`);
    }
    await sleep(SOON);
  }
}

/** Lets a job that waits for a moment be taken now; returns whether it did wait. */
export async function promote(queue: Pick<JobQueue, "getJob">, jobId: string): Promise<boolean> {
  const job = await queue.getJob(jobId);
  if (job === undefined) return false;
  return job.promote().then(
    () => true,
    () => false,
  );
}

/** Answers one pause of a run by its name, and wakes the run up if it waits for that. */
export async function answerRun(run: WhereRun, name: string, value: unknown): Promise<void> {
  const { runId, store } = run;
  const given = toAnswer(name, value);
  const waits = (state: State<object> | undefined): boolean =>
    state?.pauses.some((pause) => pause.name === name) === true;
  let wasOpen = false;
  for (let looks = 1; ; looks++) {
    const isOpen = waits(await loadIfAny(store, runId));
    wasOpen ||= isOpen;
    try {
      const kept = await changeRun(store, runId, (state) => withAnswer(state, given));
      // Decided by the State it was added to: the run may have reached the pause since it was loaded.
      if (waits(kept)) await wakeUp(run, questionOf(kept));
      return;
    } catch (error) {
      if (!wasOpen || !isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
      // A worker is about to release the run, holds it for the answer to another pause, or another answer is being
      // saved.
      if (!isOpen && looks > MOST_LOOKS) throw error;
      await sleep(SOON);
    }
  }
}
