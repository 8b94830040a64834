import { isoNow } from "../clock.js";
import { isWaymarkError, messageOf } from "../errors.js";
import type { Audit, EventMap } from "../event-map.js";
import { EventBus, type Observer, observe } from "../events.js";
import { isProgressSave } from "../state/fields.js";
import { recordOf, type State } from "../state/state.js";
import { checkFilter, filterRuns } from "./arguments.js";
import {
  type CheckpointStore,
  type ExportedCheckpoint,
  entryOf,
  type Finding,
  type HistoryEntry,
  opened,
  type RunFilter,
  type RunSummary,
  summarize,
  wrap,
} from "./store.js";

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

/**
 * The checkpoints of a run, newest first; only the newest one if the store has no `history`.
 *
 * @param load - loads that one, from a store that is open.
 */
export async function historyOf<D extends object>(
  given: CheckpointStore,
  runId: string,
  load = (store: CheckpointStore): Promise<State<D>> => store.load<D>(runId),
): Promise<HistoryEntry[]> {
  const store = await opened(given);
  if (store.history !== undefined) return store.history(runId);
  try {
    const newest = await load(store);
    return [entryOf(newest, "", isProgressSave(recordOf(newest).progress))];
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return [];
    throw error;
  }
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

/** Whether a checkpoint's name is a step. */
export function isStep(given: string): boolean {
  return /^\d{1,9}$/.test(given);
}

/**
 * The id of the checkpoint with this name: its own id, or a node or phase that had completed, which means the newest
 * such checkpoint; `undefined` if there is none.
 */
export function namedBy(given: string, history: readonly HistoryEntry[]): string | undefined {
  const isNamed = ({ checkpointId, node, phase }: HistoryEntry): boolean =>
    [checkpointId, node, phase].includes(given);
  const found =
    history.find(({ checkpointId }) => checkpointId === given) ??
    history.find((entry) => !entry.unfinished && isNamed(entry));
  return found?.checkpointId;
}

type Audited = "checkpoint.load" | "checkpoint.save" | "checkpoint.delete";

/** Wraps a store so that an observer gets its loads, saves and removals as events that name who made them. */
export function audited(store: CheckpointStore, observer: Observer, audit: Audit): CheckpointStore {
  const bus = new EventBus();
  observe(bus, observer);
  const emit = <T extends Audited>(type: T, runId: string, data: EventMap[T]): void =>
    bus.emit(type, "waymark", runId, { ...data, ...audit }, isoNow());
  const removed = (runId: string): void => emit("checkpoint.delete", runId, { node: "", step: 0 });
  return wrap(store, {
    load: (load) => async (runId, at, context) => {
      const state = await load<never>(runId, at, context);
      const { checkpointNode: node, step, checkpointId } = state;
      emit("checkpoint.load", runId, { node, step, checkpointId });
      return state;
    },
    save: (save) => async (state, options) => {
      const started = performance.now();
      const saved = await save(state, options);
      const { runId, checkpointNode: node, step, sequence, checkpointId, reason } = saved;
      const durationMs = performance.now() - started;
      emit("checkpoint.save", runId, { node, step, sequence, checkpointId, reason, durationMs });
      return saved;
    },
    delete: (remove) => async (runId) => {
      await remove(runId);
      removed(runId);
    },
    prune: (prune) => async (retention) => {
      const runIds = await prune(retention);
      if (retention.dryRun !== true) runIds.forEach(removed);
      return runIds;
    },
  });
}
