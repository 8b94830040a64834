import { wrap } from "../../checkpoint/store.js";
import { messageOf } from "../../errors.js";
import { type ActiveRun, leaseTimes } from "../../worker/active-run.js";
import { jobOptions, type RunJob } from "../../worker/job.js";
import { RunFailure, RunProcessor } from "../../worker/processor.js";
import { reconcile } from "../../worker/reconcile.js";
import { submitRun, submittedState } from "../../worker/submitted.js";
import { answerRun } from "../../worker/wake.js";
import { SimulatedQueue } from "./queue.js";
import {
  ATTEMPTS,
  answerPauses,
  graphOf,
  REST,
  runIdOf,
  type Surroundings,
  storeOf,
  tolerate,
} from "./worker.js";
import type { Process } from "./world.js";

/** How long a worker waits before it asks an empty queue again, in milliseconds. */
const POLL = 3000;

/** The defaults of a real worker. */
const LEASE = 30_000;
const BACKOFF = 1000;
const LONGEST_WAIT = 5000;

/** The errors that a processor throws, as in BullMQ. */
class DelayedError extends Error {}
class WaitingError extends Error {}
class UnrecoverableError extends Error {}
const errors = { DelayedError, WaitingError, UnrecoverableError };

/** A worker on a queue: takes one job after the other, as BullMQ's own loop does, forever. */
export async function liveByQueue<D extends object>(
  process: Process,
  around: Surroundings<D>,
): Promise<void> {
  const { world, bugs } = around;
  const queue = new SimulatedQueue(process, around.queueNetwork, around.queueServer);
  const { lock, renew } = leaseTimes(LEASE);
  const note = (error: unknown): void => world.note(process, `reports: ${messageOf(error)}`);
  const store = storeOf(process, around);
  const { claim: _, ...unclaimable } = wrap(store, {});
  const processor = new RunProcessor(
    graphOf(process, around),
    {
      store: bugs.noClaim ? unclaimable : store,
      ...{ lease: LEASE, backoff: BACKOFF, maxAttempts: ATTEMPTS, longestWait: LONGEST_WAIT },
      active: new Map<string, ActiveRun>(),
      draining: new AbortController().signal,
      onError: note,
    },
    { errors, getJob: (id) => queue.getJob(id), putFirst: (id) => queue.putFirst(id) },
  );
  const keepLock = (id: string, token: string): (() => void) => {
    let stop = (): void => {};
    const next = (): void => {
      stop = world.after(
        renew,
        process,
        () => {
          queue.extendLock(id, token, lock).catch(note);
          next();
        },
        true,
      );
    };
    next();
    return () => stop();
  };
  const work = async (job: RunJob, token: string): Promise<void> => {
    const id = String(job.id);
    const unlock = keepLock(id, token);
    try {
      await processor.process(job, token);
      await queue.complete(id, token);
    } catch (error) {
      const isMoved = error instanceof DelayedError || error instanceof WaitingError;
      const retryAfter = error instanceof RunFailure ? error.retryAfter : BACKOFF;
      world.note(process, `ends job ${id}: ${isMoved ? "moved" : messageOf(error)}`);
      if (isMoved) return;
      await queue.fail(id, token, error instanceof UnrecoverableError ? undefined : retryAfter);
    } finally {
      unlock();
    }
  };
  for (let jobs = 1; ; jobs++) {
    const token = `${process.name}-${jobs}`;
    const job = await tolerate(queue.take(token, lock), around);
    // If this can't be reported, the queue notices when the lock expires.
    if (job !== undefined) await work(job, token).catch(note);
    else await world.wait(POLL * (0.5 + process.random.next()));
  }
}

/** A client of the queue: submits runs, answers their pauses, and refills the queue, forever. */
export async function submitAndAnswer<D extends object>(
  process: Process,
  runs: readonly number[],
  around: Surroundings<D>,
): Promise<void> {
  const { world, setup } = around;
  const store = storeOf(process, around);
  const queue = new SimulatedQueue(process, around.queueNetwork, around.queueServer);
  const graph = graphOf(process, around);
  const waiting = new Set(runs);
  for (;;) {
    for (const run of waiting) {
      const runId = runIdOf(run);
      const state = submittedState(setup.data(run), graph, { runId });
      const added = submitRun(store, queue, graph.name, state, jobOptions);
      if ((await tolerate(added, around)) !== undefined) waiting.delete(run);
    }
    await tolerate(
      reconcile(store, async () => queue, undefined),
      around,
    );
    await answerPauses(store, process, around, (runId, answering) => ({
      keep: (name, value) => answerRun({ runId, store: answering, queue }, name, value),
    }));
    await world.wait(REST * (0.5 + process.random.next()));
  }
}
