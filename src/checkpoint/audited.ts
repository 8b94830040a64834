import { isoNow } from "../clock.js";
import type { Audit, EventMap } from "../event-map.js";
import { EventBus, type Observer, observe } from "../events.js";
import type { CheckpointStore } from "./store.js";

type Audited = "checkpoint.load" | "checkpoint.save" | "checkpoint.delete";

/** Wraps a store so that an observer gets its loads, saves and removals as events that name who made them. */
export function audited(store: CheckpointStore, observer: Observer, audit: Audit): CheckpointStore {
  const bus = new EventBus();
  observe(bus, observer);
  const emit = <T extends Audited>(type: T, runId: string, data: EventMap[T]): void =>
    bus.emit(type, "waymark", runId, { ...data, ...audit }, isoNow());
  const removed = (runId: string): void => emit("checkpoint.delete", runId, { node: "", step: 0 });
  const methods: Partial<CheckpointStore> = {
    load: async (runId, at, context) => {
      const state = await store.load<never>(runId, at, context);
      const { checkpointNode: node, step, checkpointId } = state;
      emit("checkpoint.load", runId, { node, step, checkpointId });
      return state;
    },
    save: async (state, options) => {
      const started = performance.now();
      const saved = await store.save(state, options);
      const { runId, checkpointNode: node, step, sequence, checkpointId, reason } = saved;
      const durationMs = performance.now() - started;
      emit("checkpoint.save", runId, { node, step, sequence, checkpointId, reason, durationMs });
      return saved;
    },
    delete: async (runId) => {
      await store.delete(runId);
      removed(runId);
    },
    ...(store.prune !== undefined && {
      prune: async (retention) => {
        const runIds = (await store.prune?.(retention)) ?? [];
        if (retention.dryRun !== true) runIds.forEach(removed);
        return runIds;
      },
    }),
  };
  return withMethods(store, methods);
}

/** Wraps a store, replacing some of its methods. */
export function withMethods(
  store: CheckpointStore,
  methods: Partial<CheckpointStore>,
): CheckpointStore {
  return new Proxy(store, {
    get: (target, key) => {
      if (Object.hasOwn(methods, key)) return Reflect.get(methods, key);
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
