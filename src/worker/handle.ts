import type { CheckpointStore } from "../checkpoint/store.js";
import { sleep } from "../clock.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import type { AnyEvent } from "../events.js";
import { LogTail } from "../observers/event-log/tail.js";
import type { LogPlace } from "../observers/run-files.js";
import { changeRun } from "../run/answers.js";
import {
  checkEventsOptions,
  checkWaitOptions,
  type EventsOptions,
  type RunHandle,
  type RunState,
  type WaitOptions,
} from "../run/handle.js";
import { lastEvent, stepEvent } from "../run/step-events.js";
import type { State } from "../state/state.js";
import type { Cancellations } from "./cancellations.js";
import type { ClientLifetime } from "./client-lifetime.js";
import type { RunQueue } from "./engine.js";
import { jobOptions, questionOf, toText } from "./job.js";
import type { JobEvent, Listener } from "./listener.js";
import { jobIdOf } from "./names.js";
import { cancelledError, failedError } from "./run-error.js";
import { cancelledEvent, isLast, toRunEvent } from "./run-events.js";
import { hasEnded, stateOf } from "./run-state.js";
import { cancelled, isCancelled, jobOf, loadIfAny, putBack } from "./submitted.js";
import { answerRun, MOST_LOOKS, promote, SOON, type WhereRun, wakeUp } from "./wake.js";

/** @internal What a handle needs from its client, for one graph. */
export interface HandleDeps {
  readonly store: CheckpointStore;
  readonly log: LogPlace | undefined;
  readonly queue: RunQueue;
  readonly listener: Listener;
  readonly cancellations: Cancellations;
  readonly lifetime: ClientLifetime;
  /** Notifies the queue's listeners. */
  publish(fields: Readonly<Record<string, string>>): Promise<unknown>;
}

/**
 * The first and the longest interval, in milliseconds, at which to check for what the queue may have failed to report.
 */
const FIRST_LOOK = 50;
const LOOK = 2000;
/** The longest interval, in milliseconds, at which to look into a log. */
const LOG_LOOK = 1000;

/**
 * The handle of a run that is, or was, in the queue. Returned by {@link Client.submit} and {@link Client.run}.
 *
 * @example
 * ```ts compile
 * import { PostgresStore } from "waymark/stores/postgres";
 * import { Client } from "waymark/worker";
 *
 * const connection = "postgres://localhost/app";
 * const client = new Client({ connection, store: new PostgresStore({ client: connection }) });
 * const run = await client.submit("letter", { text: "" });
 *
 * for await (const event of run.events()) {
 *   if (event.type === "graph.pause") await run.answer("approval", true);
 * }
 * const { state } = await run.status();
 * await run.cancel();
 * ```
 */
export class QueuedRun<D extends object = object> implements RunHandle<D> {
  /** Names the run. */
  readonly runId: string;
  /** The name of its graph. */
  readonly graph: string;
  readonly #jobId: string;
  readonly #deps: HandleDeps;

  /** @internal */
  constructor(graph: string, runId: string, deps: HandleDeps) {
    this.graph = graph;
    this.runId = runId;
    this.#jobId = jobIdOf(runId);
    this.#deps = deps;
  }

  /**
   * The run's current status.
   *
   * @throws ConfigError if the client is closed; this applies to all methods, also while they wait.
   * @throws WaymarkError with the code `QUEUE` if the queue can't be reached or does not respond within
   *   `connection.statementTimeout`; this applies to all methods.
   */
  async status(): Promise<RunState> {
    const { queue, lifetime } = this.#deps;
    const [where, job, saved] = await lifetime.during(() =>
      Promise.all([queue.getJobState(this.#jobId), queue.getJob(this.#jobId), this.#load()]),
    );
    const error = saved?.error?.message ?? job?.failedReason;
    const refused = job?.data.refused ?? saved?.pauses.find((pause) => pause.refused)?.refused;
    return {
      state: stateOf(where, saved),
      node: saved?.checkpointNode ?? "",
      step: saved?.step ?? 0,
      pauses: saved?.pauses ?? [],
      ...(error && { error }),
      ...(refused !== undefined && { refused }),
    };
  }

  /**
   * Waits for the run's end, through pauses and restarts, and returns its final State.
   *
   * @throws ExecutionError if it failed for good (its `cause` has the name and message of the node's error), or was
   *   cancelled, with the code `ABORTED`. An error of the graph or its checkpoints is a WaymarkError with its own code.
   * @throws ConfigError if an option is invalid.
   */
  async result(options: WaitOptions = {}): Promise<State<D>> {
    checkWaitOptions(options);
    return this.#deps.lifetime.during(() => this.#result(options), options.signal);
  }

  async #result(options: WaitOptions): Promise<State<D>> {
    const { queue, listener } = this.#deps;
    let wake = (): void => {};
    const stop = await listener.listen(this.#jobId, (event) => {
      if (isLast(toRunEvent(this.graph, this.runId, event))) wake();
    });
    try {
      for (let wait = FIRST_LOOK; ; wait = Math.min(wait * 2, LOOK)) {
        const woken = new AbortController();
        wake = () => woken.abort();
        if (hasEnded(await queue.getJobState(this.#jobId))) break;
        options.signal?.throwIfAborted();
        await pause(wait, woken.signal, options.signal);
      }
    } finally {
      stop();
    }
    const job = await queue.getJob(this.#jobId);
    const saved = await this.#load();
    if (saved?.status === "completed") return saved;
    throw job === undefined
      ? cancelledError(this.runId, saved)
      : failedError(this.runId, saved, job.data.failure, job.failedReason);
  }

  /**
   * Stops the run: removes it from the queue, or aborts the `signal` of its node within about a second. The run stays
   * in the store, even if it has not begun, and {@link QueuedRun.resume} continues it from there.
   *
   * @returns whether it was stopped; `false` if it had already ended, or there is no such run.
   * @throws ConfigError if the client is closed.
   */
  async cancel(): Promise<boolean> {
    return this.#deps.lifetime.during(() => this.#cancel());
  }

  async #cancel(): Promise<boolean> {
    const { queue, cancellations, publish } = this.#deps;
    const request = cancellations.request(queue.name, this.#jobId);
    let wasQueued = false;
    try {
      for (;;) {
        const where = await queue.getJobState(this.#jobId);
        if (where === "unknown" || where === "completed") break;
        wasQueued = true;
        const removed = await queue.remove(this.#jobId).catch(() => undefined);
        if (removed === 1) {
          // Not every queue reports it.
          await publish(cancelledEvent(this.#jobId));
          break;
        }
        // The job of a schedule can't be removed: a worker has to end it.
        if (removed === undefined) await this.#endSoon();
        await request.ask();
        await sleep(SOON);
      }
    } finally {
      await request.takeBack();
    }
    return this.#noteCancel(wasQueued);
  }

  /** Saves that a run was cancelled, in case the queue has to be refilled; returns whether it had not ended. */
  async #noteCancel(wasQueued: boolean): Promise<boolean> {
    const saved = await this.#load();
    if (saved === undefined) return wasQueued;
    if (isCancelled(saved)) return true;
    if (saved.status === "completed") return false;
    await this.#change(cancelled);
    return true;
  }

  /** Saves the run with another reason; a process that holds it may be about to release it. */
  async #change(change: (state: State<D>) => State<D>): Promise<void> {
    for (let looks = 1; ; looks++) {
      try {
        await changeRun(this.#deps.store, this.runId, change);
        return;
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
        // The holder will save the run itself.
        if (looks === MOST_LOOKS) return;
        await sleep(SOON);
      }
    }
  }

  /**
   * Continues the run: with the input it is paused for, or without if it only waits. A run that failed gets one more
   * attempt; one that was cancelled returns to the queue. Resolves when it is in the queue; {@link QueuedRun.status}
   * reports input that the graph refused.
   *
   * @throws ConfigError if there is no such run, or there is input and the run is not paused.
   * @throws SerializationError if a checkpoint can't hold the input.
   */
  async resume(input?: unknown): Promise<void> {
    return this.#deps.lifetime.during(() => this.#resume(input));
  }

  async #resume(input: unknown): Promise<void> {
    const saved = await this.#load();
    const job = await this.#deps.queue.getJob(this.#jobId);
    if (saved === undefined && job === undefined) {
      throw new ConfigError(
        "runId",
        `${show(this.runId)} is neither in the queue nor in the store`,
      );
    }
    if (input !== undefined && saved?.status !== "paused") {
      const what =
        saved === undefined || saved.status === "pending" ? "not begun yet" : saved.status;
      throw new ConfigError("input", `was given, but run ${show(this.runId)} is ${what}`);
    }
    const question = questionOf(saved);
    const answer = input === undefined ? {} : { input: { question, value: toText(input) } };
    if (job === undefined) {
      if (saved === undefined || saved.status === "completed") return;
      if (isCancelled(saved)) await this.#change(putBack);
      const data = { ...jobOf((await this.#load()) ?? saved), ...answer };
      await this.#deps.queue.add(this.graph, data, { ...jobOptions, jobId: this.#jobId });
      return;
    }
    const { refused: _, failure: __, ...data } = job.data;
    if (await job.isFailed()) {
      await job.updateData({ ...data, ...answer, retriedAfter: job.attemptsStarted });
      await job.retry("failed", { resetAttemptsMade: true });
      return;
    }
    if (input !== undefined) await job.updateData({ ...data, ...answer });
    await wakeUp(this.#where, question);
  }

  /**
   * Answers one pause by its name, for a run that waits for several or for a named one. An answer to a pause that the
   * run has not reached yet is kept for it, unless a worker holds the run right now.
   *
   * @throws ConfigError if the run has completed, or is not in the store yet.
   * @throws CheckpointConflictError if a worker holds the run and it does not wait for this pause.
   * @throws SerializationError if the value can't be stored exactly.
   */
  async answer(name: string, value: unknown): Promise<void> {
    return this.#deps.lifetime.during(() => answerRun(this.#where, name, value));
  }

  /**
   * The run's events until its end: those of the queue, and those of the graph that the client's `log` has or, without
   * one, that the worker's `events` option selects. With `from: "start"` what the log has so far comes first, and the
   * saved steps that it does not have.
   *
   * @throws ConfigError if an option is invalid.
   */
  events(options: EventsOptions = {}): AsyncGenerator<AnyEvent, void, undefined> {
    checkEventsOptions(options);
    return this.#events(options);
  }

  async *#events({
    from = "now",
    signal,
  }: EventsOptions): AsyncGenerator<AnyEvent, void, undefined> {
    const { queue, listener, lifetime, log } = this.#deps;
    const waiting: AnyEvent[] = [];
    let woken = new AbortController();
    const hear = (event: JobEvent): void => {
      waiting.push(toRunEvent(this.graph, this.runId, event));
      woken.abort();
    };
    const stop = await lifetime.during(() => listener.listen(this.#jobId, hear), signal);
    const [first, longest] = log === undefined ? [LOOK, LOOK] : [FIRST_LOOK, LOG_LOOK];
    const tail = new LogTail(log, this.runId, from);
    try {
      if (from === "start") {
        const saved = await lifetime.during(() => this.#load(), signal);
        const { steps = [] } = saved ?? {};
        yield* tail.next(steps.map((record) => stepEvent(record, this.runId, this.graph)));
        const last = saved && lastEvent(saved, this.graph);
        if (last !== undefined) yield* tail.end(last, signal);
      } else {
        // Only to begin at the end of the log.
        yield* tail.next([]);
      }
      // The queue's last event may arrive after the run has ended, so wait once more.
      for (let looks = 0, isOver = false, wait = first; ; looks++) {
        for (let event = waiting.shift(); event !== undefined; event = waiting.shift()) {
          if (isLast(event)) yield* tail.next([]);
          if (!tail.has(event)) yield event;
          if (isLast(event)) return;
        }
        if (isOver) return;
        woken = new AbortController();
        isOver = hasEnded(await lifetime.during(() => queue.getJobState(this.#jobId), signal));
        if (isOver && looks === 0) return;
        const heard = woken.signal;
        if (waiting.length === 0)
          await lifetime.during(() => pause(isOver ? LOOK : wait, heard, signal));
        signal?.throwIfAborted();
        wait = Math.min(wait * 2, longest);
        // What a worker reports is in the log by then.
        for await (const event of tail.next([])) {
          wait = first;
          yield event;
        }
        isOver &&= waiting.length === 0;
      }
    } finally {
      stop();
    }
  }

  /** Resolves when the run is in the store; rejects if it ended before. */
  get saved(): Promise<void> {
    const saved = this.#deps.lifetime.during(() => this.#untilSaved());
    saved.catch(() => {});
    return saved;
  }

  async #untilSaved(): Promise<void> {
    for (let wait = FIRST_LOOK; ; wait = Math.min(wait * 2, LOOK)) {
      const where = await this.#deps.queue.getJobState(this.#jobId);
      if ((await this.#load()) !== undefined) return;
      if (hasEnded(where)) throw cancelledError(this.runId, undefined);
      await sleep(wait);
    }
  }

  async #endSoon(): Promise<void> {
    const job = await this.#deps.queue.getJob(this.#jobId);
    // If it is gone by now, the next check notices.
    await job?.updateData({ ...job.data, cancelled: true }).catch(() => {});
    await promote(this.#deps.queue, this.#jobId);
  }

  get #where(): WhereRun {
    const { store, queue } = this.#deps;
    return { runId: this.runId, store, queue };
  }

  #load(): Promise<State<D> | undefined> {
    return loadIfAny<D>(this.#deps.store, this.runId);
  }
}

/** Waits until `woken` aborts or the time is over; rejects when `signal` aborts. */
async function pause(
  ms: number,
  woken: AbortSignal,
  signal: AbortSignal | undefined,
): Promise<void> {
  const signals = signal === undefined ? [woken] : [woken, signal];
  await sleep(ms, ...signals).catch(() => signal?.throwIfAborted());
}
