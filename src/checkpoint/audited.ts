import { isoNow } from "../clock.js";
import type { Audit, EventMap } from "../event-map.js";
import { EventBus, type Observer, observe } from "../events.js";
import type { CheckpointStore } from "./store.js";
import { wrap } from "./wrap.js";

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
