import { type CheckpointStore, type Claim, wrap } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { CheckpointConflictError } from "../errors.js";

/** Why a run is stopped before its end. */
export type StopReason = "cancel" | "close" | "lost";

/** A run that this worker works on. */
export class ActiveRun {
  readonly runId: string;
  readonly graph: string;
  readonly jobId: string;
  /** When it was claimed, in milliseconds since 1970. */
  readonly since = now();
  /** The claim under which the run is worked on; `undefined` until it is claimed. */
  claim: Claim | undefined;
  /** The first reason for which it was stopped. */
  why: StopReason | undefined;
  /** Whether another worker may hold the run now, so that nothing more may be saved here. */
  isLost = false;
  /** Resolves when all events have been sent to remote listeners. */
  sent: Promise<unknown> = Promise.resolve();
  readonly #controller = new AbortController();

  constructor(runId: string, graph: string, jobId: string) {
    this.runId = runId;
    this.graph = graph;
    this.jobId = jobId;
  }

  /** The `signal` of the run's nodes. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(why: StopReason, reason: unknown): void {
    this.why ??= why;
    this.isLost ||= why === "lost";
    this.#controller.abort(reason);
  }

  /** Sends events one after the other. */
  send(action: () => Promise<unknown>, onError: (error: unknown) => void): void {
    this.sent = this.sent.then(action).catch(onError);
  }
}

/**
 * The times that follow from a lease, in milliseconds: how long a claim and a lock on a job last unless they are
 * renewed, how often a lock is renewed, and how often the queue is searched for jobs whose lock has expired.
 *
 * When a worker dies, the claims on its runs expire first and the locks on its jobs after that, so that the worker that
 * gets a job can claim its run at once. A job is free two checks after its lock has expired, which leaves most of
 * another lease for a worker with capacity to take it.
 */
export function leaseTimes(lease: number) {
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
