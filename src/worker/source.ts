import { sleep } from "../clock.js";
import { ConfigError, isWaymarkError, show } from "../errors.js";
import type { AnyEvent } from "../events.js";
import { type Beginning, type Look, type RunSource, SourceHandle } from "../run/handles/source.js";
import { loadIfAny } from "../run/handles/stored.js";
import { changeRun } from "../run/pauses/answers.js";
import type { State } from "../state/state.js";
import { follow, type QueueDeps, type RunInQueue } from "./following.js";
import type { QueuedRun } from "./handle.js";
import { jobOptions, questionOf, toText } from "./job.js";
import { jobIdOf } from "./names.js";
import { cancelledError, failedError } from "./run-error.js";
import { cancelledEvent } from "./run-events.js";
import { stateOf } from "./run-state.js";
import { cancelled, isCancelled, jobOf, putBack } from "./submitted.js";
import { answerRun, MOST_LOOKS, promote, SOON, wakeUp } from "./wake.js";

/** A run that is, or was, in the queue. */
export class QueueSource<D extends object> implements RunSource<D> {
  readonly runId: string;
  readonly #run: RunInQueue;

  constructor(graph: string, runId: string, deps: QueueDeps) {
    this.runId = runId;
    this.#run = { ...deps, graph, runId, jobId: jobIdOf(runId) };
  }

  get closed(): AbortSignal {
    return this.#run.closed;
  }

  async look(): Promise<Look> {
    const { queue, jobId } = this.#run;
    const of = [queue.getJobState(jobId), queue.getJob(jobId), this.#load()] as const;
    const [where, job, saved] = await Promise.all(of);
    return {
      state: stateOf(where, saved),
      at: saved,
      error: (saved?.error?.message ?? job?.failedReason) || undefined,
      refused: job?.data.refused ?? saved?.pauses.find((pause) => pause.refused)?.refused,
    };
  }

  follow(from: Beginning, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    return follow(this.#run, from, signal);
  }

  async end(signal: AbortSignal): Promise<State<D>> {
    const { queue, jobId, runId } = this.#run;
    // It has no events, only an end.
    await follow(this.#run, undefined, signal).next();
    const job = await queue.getJob(jobId);
    const saved = await this.#load();
    if (saved?.status === "completed") return saved;
    throw job === undefined
      ? cancelledError(runId, saved)
      : failedError(runId, saved, job.data.failure, job.failedReason);
  }

  answer(name: string, value: unknown): Promise<void> {
    return answerRun(this.#run, name, value);
  }

  async stop(): Promise<boolean> {
    const { queue, jobId, cancellations, publish } = this.#run;
    const request = cancellations.request(queue.name, jobId);
    let wasQueued = false;
    try {
      for (;;) {
        const where = await queue.getJobState(jobId);
        if (where === "unknown" || where === "completed") break;
        wasQueued = true;
        const removed = await queue.remove(jobId).catch(() => undefined);
        if (removed === 1) {
          // Not every queue reports it.
          await publish(cancelledEvent(jobId));
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
        await changeRun(this.#run.store, this.runId, change);
        return;
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
        // The holder will save the run itself.
        if (looks === MOST_LOOKS) return;
        await sleep(SOON);
      }
    }
  }

  /** See {@link QueuedRun.resume}. */
  async resume(input: unknown): Promise<void> {
    const { queue, graph, runId, jobId } = this.#run;
    const saved = await this.#load();
    const job = await queue.getJob(jobId);
    if (saved === undefined && job === undefined) {
      throw new ConfigError("runId", `${show(runId)} is neither in the queue nor in the store`);
    }
    if (input !== undefined && saved?.status !== "paused") {
      const what =
        saved === undefined || saved.status === "pending" ? "not begun yet" : saved.status;
      throw new ConfigError("input", `was given, but run ${show(runId)} is ${what}`);
    }
    const question = questionOf(saved);
    const answer = input === undefined ? {} : { input: { question, value: toText(input) } };
    if (job === undefined) {
      if (saved === undefined || saved.status === "completed") return;
      if (isCancelled(saved)) await this.#change(putBack);
      const data = { ...jobOf((await this.#load()) ?? saved), ...answer };
      await queue.add(graph, data, { ...jobOptions, jobId });
      return;
    }
    const { refused: _, failure: __, ...data } = job.data;
    if (await job.isFailed()) {
      await job.updateData({ ...data, ...answer, retriedAfter: job.attemptsStarted });
      await job.retry("failed", { resetAttemptsMade: true });
      return;
    }
    if (input !== undefined) await job.updateData({ ...data, ...answer });
    await wakeUp(this.#run, question);
  }

  async #endSoon(): Promise<void> {
    const { queue, jobId } = this.#run;
    const job = await queue.getJob(jobId);
    // If it is gone by now, the next check notices.
    await job?.updateData({ ...job.data, cancelled: true }).catch(() => {});
    await promote(queue, jobId);
  }

  #load(): Promise<State<D> | undefined> {
    return loadIfAny<D>(this.#run.store, this.runId);
  }
}

/** The handle of a run in the queue of a graph. */
export class QueueHandle<D extends object> extends SourceHandle<D> implements QueuedRun<D> {
  readonly graph: string;
  readonly #source: QueueSource<D>;

  constructor(graph: string, runId: string, deps: QueueDeps) {
    const source = new QueueSource<D>(graph, runId, deps);
    super(source);
    this.graph = graph;
    this.#source = source;
  }

  async resume(input?: unknown): Promise<void> {
    return this.during(() => this.#source.resume(input));
  }
}
