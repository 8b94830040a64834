import type { CheckpointStore } from "../checkpoint/store.js";
import { sleep } from "../clock.js";
import { unlessAborted } from "../concurrency.js";
import type { AnyEvent } from "../events.js";
import { LogTail } from "../observers/log/tail.js";
import type { LogPlace } from "../observers/run-files.js";
import type { Beginning } from "../run/handles/source.js";
import { lastEvent, stepEvent } from "../run/handles/step-events.js";
import { loadIfAny } from "../run/handles/stored.js";
import type { Cancellations } from "./cancellations.js";
import type { RunQueue } from "./engine.js";
import type { JobPlace } from "./job.js";
import { isLast, type JobEvent, type Listener, toRunEvent } from "./listener.js";

/** What a client gives the handles of one graph. */
export interface QueueDeps {
  readonly store: CheckpointStore;
  readonly log: LogPlace | undefined;
  readonly queue: RunQueue;
  readonly listener: Listener;
  readonly cancellations: Cancellations;
  /** Aborts when the client closes. */
  readonly closed: AbortSignal;
  /** Notifies the queue's listeners. */
  publish(fields: Readonly<Record<string, string>>): Promise<unknown>;
}

/** A run, and where it is. */
export interface RunInQueue extends QueueDeps {
  readonly graph: string;
  readonly runId: string;
  readonly jobId: string;
}

/**
 * The first and the longest interval, in milliseconds, at which to check for what the queue may have failed to report.
 */
const FIRST_LOOK = 50;
const LOOK = 2000;
/** Whether a job has ended, by its place: each that BullMQ knows is here. */
const hasEnded: Readonly<Record<JobPlace, boolean>> = {
  waiting: false,
  "waiting-children": false,
  prioritized: false,
  delayed: false,
  active: false,
  completed: true,
  failed: true,
  unknown: true,
};
/** The longest interval, in milliseconds, at which to look into a log. */
const LOG_LOOK = 1000;

/** The events of a run of the queue, until it ends; without `from` only waits for that. */
export async function* follow(
  run: RunInQueue,
  from: Beginning | undefined,
  signal: AbortSignal,
): AsyncGenerator<AnyEvent, void, undefined> {
  const { queue, listener, log, graph, runId, jobId } = run;
  const tail = from && new LogTail(log, runId, from);
  // The queue reports its events by itself, a log does not.
  const isTold = tail !== undefined && log === undefined;
  const first = isTold ? LOOK : FIRST_LOOK;
  const longest = tail && log ? LOG_LOOK : LOOK;
  const waiting: AnyEvent[] = [];
  let woken = new AbortController();
  const stop = await unlessAborted(listener.listen(jobId, hear), signal);
  function hear(given: JobEvent): void {
    const event = toRunEvent(graph, runId, given);
    if (tail !== undefined) waiting.push(event);
    if (tail !== undefined || isLast(event)) woken.abort();
  }
  try {
    if (tail !== undefined) yield* past(run, tail, from, signal);
    // The queue's last event may arrive after the run has ended, so wait once more.
    for (let looks = 0, isOver = false, wait = first; ; looks++) {
      for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
        if (isLast(event)) yield* tail?.next([]) ?? [];
        if (!tail?.has(event)) yield event;
        if (isLast(event)) return;
      }
      if (isOver) return;
      woken = new AbortController();
      isOver = hasEnded[await unlessAborted(queue.getJobState(jobId), signal)];
      if (isOver && (looks === 0 || tail === undefined)) return;
      const heard = woken.signal;
      if (waiting.length === 0) await sleep(isOver ? LOOK : wait, heard, signal).catch(() => {});
      signal.throwIfAborted();
      wait = Math.min(wait * 2, longest);
      // What a worker reports is in the log by then.
      for await (const event of tail?.next([]) ?? []) {
        wait = first;
        yield event;
      }
      isOver &&= waiting.length === 0;
    }
  } finally {
    stop();
  }
}

/** What happened before the reader came; from now on, nothing, but the log begins at its end. */
async function* past(
  { store, runId, graph }: RunInQueue,
  tail: LogTail,
  from: Beginning | undefined,
  signal: AbortSignal,
): AsyncGenerator<AnyEvent, void, undefined> {
  const isAll = from === "start";
  const saved = isAll ? await unlessAborted(loadIfAny(store, runId), signal) : undefined;
  const { steps = [] } = saved ?? {};
  yield* tail.next(steps.map((record) => stepEvent(record, runId, graph)));
  const last = saved && lastEvent(saved, graph);
  if (last !== undefined) yield* tail.end(last, signal);
}
