import { pages } from "../checkpoint/arguments.js";
import { waitsForResume } from "../checkpoint/fork.js";
import { type CheckpointStore, opened, type RunSummary } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { ConfigError } from "../errors.js";
import { loadIfAny } from "../run/handles/stored.js";
import { progressOf } from "../state/derive.js";
import { hasEnded } from "../state/fields.js";
import { unended } from "../state/record.js";
import type { State } from "../state/state.js";
import { outcomeOf } from "./advance.js";
import { type JobQueue, jobIdOf, jobOptions } from "./job.js";
import { YEAR } from "./processor.js";
import { isCancelled, isSubmitted, jobOf } from "./submitted.js";
import { promote } from "./wake.js";

/**
 * Puts unfinished runs of a store that are in no queue back into theirs, and wakes up those that are due; returns their
 * ids.
 */
export async function reconcile(
  given: CheckpointStore,
  queueOf: (graph: string) => Promise<JobQueue>,
  only: string | undefined,
): Promise<string[]> {
  const store = await opened(given);
  const list = store.runs?.bind(store);
  if (list === undefined) {
    const problem = "must have runs() so that the queue can be refilled from it";
    throw new ConfigError("options.store", problem);
  }
  const filter = {
    status: unended,
    ...(only !== undefined && { graph: only }),
  } as const;
  const found: string[] = [];
  for await (const page of pages(list, filter)) {
    for (const run of page) if (await refill(store, run, queueOf)) found.push(run.runId);
  }
  return found;
}

/** Sees to it that a worker takes a run; returns whether there was anything to do. */
async function refill(
  store: CheckpointStore,
  { runId, graph }: RunSummary,
  queueOf: (graph: string) => Promise<JobQueue>,
): Promise<boolean> {
  if (graph === "") return false;
  const queue = await queueOf(graph);
  const jobId = jobIdOf(runId);
  const isQueued = (await queue.getJob(jobId)) !== undefined;
  if ((await store.holder?.(runId)) !== undefined) return false;
  const saved = await loadIfAny<object>(store, runId);
  if (saved === undefined || !belongsInQueue(saved)) return false;
  const delay = Math.max(0, Math.ceil(dueAt(saved) - now()));
  // The queue may have lost only that it was to be taken: one that got its answer, for example.
  if (isQueued) return delay === 0 && promote(queue, jobId);
  await queue.add(graph, jobOf(saved), { ...jobOptions, jobId, ...(delay > 0 && { delay }) });
  return true;
}

function belongsInQueue(saved: State<object>): boolean {
  return !hasEnded(saved) && !isCancelled(saved) && !waitsForResume(saved);
}

/** When a worker should take a run, in milliseconds since 1970. */
function dueAt(saved: State<object>): number {
  if (isSubmitted(saved)) return Date.parse(saved.startedAt);
  if (saved.status !== "paused") return 0;
  const { pauses, answers } = progressOf(saved);
  const isAnswered = pauses.some(({ name }) => answers.some((answer) => answer.name === name));
  if (isAnswered) return 0;
  const outcome = outcomeOf(saved);
  return (outcome.kind === "paused" ? outcome.until : undefined) ?? now() + YEAR;
}
