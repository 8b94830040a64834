import { isoNow } from "../clock.js";
import { newId } from "../random.js";
import { progressOf, withProgress } from "../state/derive.js";
import { isReason } from "../state/fields.js";
import type { Reason } from "../state/reasons.js";
import type { GraphIdentity, RunStatus } from "../state/record.js";
import { withDataCopies } from "../state/results.js";
import { type Patch, recordOf, type State, stateOf } from "../state/state.js";
import type { CheckpointAt, CheckpointStore } from "./store.js";

/** A new run that continues from a checkpoint, with changes merged in. It is not saved yet. */
export function forked<D extends object>(
  source: State<D>,
  changes: Patch<D>,
  graph: GraphIdentity | undefined,
): State<D> {
  const { runId, checkpointId } = source;
  const { unfinished, ...progress } = progressOf(source);
  const change = (data: object): object => ({ ...data, ...changes });
  const parent = Object.freeze({ runId, checkpointId });
  const { data, traits, identity } = recordOf(source.merge(changes));
  return stateOf({
    data,
    traits,
    identity: { ...identity, runId: newId(), parent, graph, startedAt: isoNow() },
    progress: {
      ...progress,
      unfinished: unfinished && withDataCopies(unfinished, change),
      resumes: 0,
      crashes: 0,
    },
    saved: { checkpointId, sequence: 0, savedAt: "" },
  });
}

/**
 * A State that continues from before the newest one, with the newest one's sequence: its work is done again, under new
 * idempotency keys.
 */
export function rolledBack<D extends object>(state: State<D>): State<D> {
  return withProgress(state, { rollback: state.sequence + 1 });
}

/** Whether a run was forked or rolled back, and has not been resumed since. */
export function waitsForResume({ reason }: { readonly reason: string }): boolean {
  return isReason(reason, "fork", "rollback");
}

/*
 * What `fork` and `rollback` of a graph do, without the graph: nothing runs, so its nodes are not needed. The
 * State keeps the schema version it was saved with, and is migrated when it is resumed.
 */

/** Saves a new run made from a checkpoint, with changes merged in. */
export async function forkRun(
  store: CheckpointStore,
  runId: string,
  at: CheckpointAt,
  changes: object,
): Promise<State<object>> {
  const source = await store.load<object>(runId, at);
  return store.save(ready(forked(source, changes, source.graph), "fork"));
}

/** Saves the State of a checkpoint again, as the newest of its run. */
export async function rollBackRun(
  store: CheckpointStore,
  state: State<object>,
): Promise<State<object>> {
  const { runId, checkpointId, savedAt } = state;
  const { sequence } = await store.load<object>(runId);
  const newest = state.savedAs({ checkpointId, sequence, savedAt });
  return store.save(ready(rolledBack(newest), "rollback"));
}

/** A State that waits to be resumed. */
export function ready<D extends object>(state: State<D>, reason: Reason): State<D> {
  return withProgress(state, {
    status: statusOf(state),
    error: undefined,
    reason,
    recovery: undefined,
  });
}

function statusOf<D extends object>({ pauses, checkpointNode, status }: State<D>): RunStatus {
  if (pauses.length > 0) return "paused";
  if (status === "completed") return status;
  return checkpointNode === "" ? "pending" : "in_progress";
}
