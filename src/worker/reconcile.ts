import { waitsForResume } from "../checkpoint/fork.js";
import { type CheckpointStore, opened, type RunSummary } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { ConfigError } from "../errors.js";
import { loadIfAny } from "../run/handles/stored.js";
import { progressOf } from "../state/derive.js";
import type { State } from "../state/state.js";
import { outcomeOf } from "./advance.js";
import { type JobQueue, jobIdOf, jobOptions } from "./job.js";
import { YEAR } from "./processor.js";
import { isCancelled, isSubmitted, jobOf } from "./submitted.js";
import { promote } from "./wake.js";

/** The number of runs to read from the store at once. */
const PAGE = 500;

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
  const found: string[] = [];
  for await (const { runId, graph } of unfinished(store, only)) {
    if (graph === "") continue;
    const queue = await queueOf(graph);
    const jobId = jobIdOf(runId);
    const isQueued = (await queue.getJob(jobId)) !== undefined;
    if ((await store.holder?.(runId)) !== undefined) continue;
    const saved = await loadIfAny<object>(store, runId);
    if (saved === undefined || !belongsInQueue(saved)) continue;
    const delay = Math.max(0, Math.ceil(dueAt(saved) - now()));
    if (isQueued) {
      // The queue may have lost only that it was to be taken: one that got its answer, for example.
      if (delay === 0 && (await promote(queue, jobId))) found.push(runId);
      continue;
    }
    await queue.add(graph, jobOf(saved), { ...jobOptions, jobId, ...(delay > 0 && { delay }) });
    found.push(runId);
  }
  return found;
}

async function* unfinished(
  store: CheckpointStore,
  graph: string | undefined,
): AsyncGenerator<RunSummary, void, undefined> {
  if (store.runs === undefined) {
    throw new ConfigError(
      "options.store",
      "must have runs() so that the queue can be refilled from it",
    );
  }
  let cursor: RunSummary | undefined;
  do {
    const page: RunSummary[] = await store.runs({
      status: ["pending", "in_progress", "paused"],
      limit: PAGE,
      cursor,
      ...(graph !== undefined && { graph }),
    });
    yield* page;
    cursor = page.length < PAGE ? undefined : page.at(-1);
  } while (cursor !== undefined);
}

function belongsInQueue(saved: State<object>): boolean {
  const hasEnded = saved.status === "completed" || saved.status === "failed";
  return !hasEnded && !isCancelled(saved) && !waitsForResume(saved);
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
