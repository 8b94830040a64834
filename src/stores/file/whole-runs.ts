import { prunable } from "../../checkpoint/retention.js";
import type {
  CheckpointAt,
  ExportedCheckpoint,
  HistoryEntry,
  Retention,
  RunSummary,
} from "../../checkpoint/store.js";
import type { State } from "../../state/state.js";
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
