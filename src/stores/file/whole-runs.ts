import { checkImport } from "../../checkpoint/arguments.js";
import { prunable } from "../../checkpoint/retention.js";
import type {
  CheckpointAt,
  ExportedCheckpoint,
  HistoryEntry,
  Retention,
  RunSummary,
} from "../../checkpoint/store.js";
import type { Saved } from "../../state/record.js";
import { State } from "../../state/state.js";
import type { Claims } from "./claim.js";

/**
 * Removes the runs that a retention rule gives up, but for those that a living process works on: one
 * that has failed and is resumed says that it goes on only with its next checkpoint.
 *
 * @param remove - says whether it was removed; not when it was saved to meanwhile.
 */
export async function pruneRuns(
  runs: Iterable<RunSummary>,
  retention: Retention,
  claims: Claims,
  remove: (run: RunSummary) => Promise<boolean>,
): Promise<string[]> {
  const removed: string[] = [];
  for (const run of prunable([...runs], retention)) {
    const { runId } = run;
    if (retention.dryRun === true) {
      if (!(await claims.isClaimed(runId))) removed.push(runId);
      continue;
    }
    const claim = await claims.claim(runId);
    if (claim === undefined) continue;
    try {
      if (await remove(run)) removed.push(runId);
    } finally {
      await claim.release();
    }
  }
  return removed;
}

/** Which checkpoint to load, and where in its run it is, if that is known: so nothing else is looked at. */
export interface Wanted extends CheckpointAt {
  readonly sequence?: number;
}

/** The checkpoints in a run's history, oldest first. */
export async function* exportRun(
  history: readonly HistoryEntry[],
  load: (wanted: Wanted) => Promise<State<object>>,
): AsyncGenerator<ExportedCheckpoint> {
  for (const { checkpointId, sequence, parentId } of history.toReversed()) {
    yield { state: await load({ checkpointId, sequence }), parentId };
  }
}

/**
 * Restores checkpoints one after the other. If that fails, none of them stays, unless somebody has gone
 * on with the run: its beginning would be taken for the whole of it.
 */
export async function importRun(
  checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  restore: (checkpoint: ExportedCheckpoint, after: Saved | undefined) => Promise<State<object>>,
  remove: (last: State<object>) => Promise<unknown>,
): Promise<void> {
  let last: State<object> | undefined;
  try {
    for await (const checkpoint of checkImport(checkpoints)) {
      last = await restore(checkpoint, last && State.recordOf(last));
    }
  } catch (error) {
    if (last !== undefined) await remove(last).catch(() => {});
    throw error;
  }
}
