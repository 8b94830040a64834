import { forked, rolledBack } from "../../checkpoint/fork.js";
import type { CheckpointAt, CheckpointStore } from "../../checkpoint/store.js";
import { withProgress } from "../../state/derive.js";
import type { RunStatus } from "../../state/record.js";
import type { State } from "../../state/state.js";

/*
 * What `fork` and `rollback` of a graph do, without the graph: nothing runs, so its nodes are not
 * needed. The State stays of the version it was saved with, and is migrated when it is resumed.
 */

/** Saves a new run out of a checkpoint, with changes merged in. */
export async function forkRun(
  store: CheckpointStore,
  runId: string,
  at: CheckpointAt,
  changes: object,
): Promise<State<object>> {
  const source = await store.load<object>(runId, at);
  return store.save(ready(forked(source, changes, source.graph), "fork"));
}

/** Saves the State of a checkpoint once more, as the newest of its run. */
export async function rollBackRun(
  store: CheckpointStore,
  state: State<object>,
): Promise<State<object>> {
  const { runId, checkpointId, savedAt } = state;
  const { sequence } = await store.load<object>(runId);
  const newest = state.savedAs({ checkpointId, sequence, savedAt });
  return store.save(ready(rolledBack(newest), "rollback"));
}

function ready(state: State<object>, reason: string): State<object> {
  return withProgress(state, {
    status: statusOf(state),
    error: undefined,
    reason,
    recovery: undefined,
  });
}

function statusOf({ pauses, checkpointNode, status }: State<object>): RunStatus {
  if (pauses.length > 0) return "paused";
  if (checkpointNode === "") return "pending";
  return status === "completed" ? status : "in_progress";
}
