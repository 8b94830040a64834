import { isWaymarkError, messageOf } from "../errors.js";
import { isProgressSave } from "../state/fields.js";
import { recordOf, type State } from "../state/state.js";
import { checkFilter, filterRuns } from "./retention.js";
import {
  type CheckpointStore,
  type ExportedCheckpoint,
  entryOf,
  type Finding,
  type HistoryEntry,
  type RunFilter,
  type RunSummary,
  summarize,
} from "./store.js";
import { opened } from "./wrap.js";

/*
 * Operations on any store, even one that has only the four required methods.
 */

/** The runs of a store that match a filter, most recently saved first. */
export async function listRuns(
  given: CheckpointStore,
  filter: RunFilter = {},
): Promise<RunSummary[]> {
  const store = await opened(given);
  if (store.runs !== undefined) return store.runs(filter);
  checkFilter(filter);
  const states = (await store.list()).map((runId) => store.load<object>(runId));
  return filterRuns((await Promise.all(states)).map(summarize), filter);
}

/** The checkpoints of a run, newest first; only the newest one if the store has no `history`. */
export async function historyOf(given: CheckpointStore, runId: string): Promise<HistoryEntry[]> {
  const store = await opened(given);
  if (store.history !== undefined) return store.history(runId);
  const newest = await newestOf(store, runId);
  if (newest === undefined) return [];
  return [entryOf(newest, "", isProgressSave(recordOf(newest).progress))];
}

/** The checkpoints of a run, oldest first, as `export` returns them. */
export async function* exportOf(
  given: CheckpointStore,
  runId: string,
): AsyncGenerator<ExportedCheckpoint> {
  const store = await opened(given);
  if (store.export !== undefined) {
    yield* store.export(runId);
    return;
  }
  for (const { checkpointId, parentId } of (await historyOf(store, runId)).reverse()) {
    yield { state: await store.load<object>(runId, { checkpointId }), parentId };
  }
}

/**
 * What is wrong with the checkpoints of a run, or of all runs; if the store has no `verify`, those that fail
 * to load.
 */
export async function* verifyOf(given: CheckpointStore, runId?: string): AsyncGenerator<Finding> {
  const store = await opened(given);
  if (store.verify !== undefined) {
    yield* store.verify(runId);
    return;
  }
  for (const one of runId === undefined ? await store.list() : [runId]) {
    const history = (await store.history?.(one)) ?? [{ sequence: 0, checkpointId: undefined }];
    for (const { sequence, checkpointId } of history.toReversed()) {
      try {
        await store.load(one, { checkpointId });
      } catch (error) {
        yield { runId: one, sequence, ...faultOf(error) };
      }
    }
  }
}

/** The finding for a checkpoint that does not load. */
export function faultOf(error: unknown): Pick<Finding, "problem" | "expected" | "actual"> {
  if (isWaymarkError(error, "CHECKPOINT_CORRUPT")) {
    const { expected, actual } = error;
    return { problem: "corrupt", expected, actual };
  }
  return { problem: "unreadable", expected: "a checkpoint", actual: messageOf(error) };
}

async function newestOf(store: CheckpointStore, runId: string): Promise<State<object> | undefined> {
  try {
    return await store.load<object>(runId);
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}
