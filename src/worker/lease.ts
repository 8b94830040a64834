import { type CheckpointStore, wrap } from "../checkpoint/store.js";
import { CheckpointConflictError } from "../errors.js";
import type { ActiveRun } from "./active-run.js";

/** The times that follow from a lease, for the store and the queue, in milliseconds. */
export interface LeaseTimes {
  /** How long an unrenewed claim lasts. */
  readonly claim: number;
  /** How long the queue's unrenewed lock on a job lasts. */
  readonly lock: number;
  /** How often the lock is renewed. */
  readonly renew: number;
  /** How often the queue is searched for jobs whose lock has expired. */
  readonly check: number;
}

/**
 * When a worker dies, the claims on its runs expire first and the locks on its jobs after that, so that the worker that
 * gets a job can claim its run at once. A job is free two checks after its lock has expired, which leaves most of
 * another lease for a worker with capacity to take it.
 */
export function leaseTimes(lease: number): LeaseTimes {
  return {
    claim: Math.ceil((lease * 2) / 3),
    lock: Math.ceil((lease * 5) / 6),
    renew: Math.floor(lease / 6),
    check: Math.ceil(lease / 6),
  };
}

/**
 * The store as a graph in a worker sees it. The worker has claimed the run already; once it loses that claim, it saves
 * nothing more, whatever a node still returns.
 */
export function fenced(
  store: CheckpointStore,
  active: ReadonlyMap<string, ActiveRun>,
): CheckpointStore {
  return wrap(store, {
    save: (save) => async (state, options) => {
      const { runId, sequence } = state;
      if (active.get(runId)?.isLost) {
        const problem = "is no longer claimed by this worker: another one may have it";
        throw new CheckpointConflictError(runId, sequence, sequence, { problem });
      }
      return save(state, options);
    },
  });
}
