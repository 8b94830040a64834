import { sleep } from "../clock.js";
import {
  CheckpointSaveError,
  ConfigError,
  type ErrorCode,
  ExecutionError,
  type ExecutionErrorCode,
  errorTable,
  isWaymarkError,
  show,
  type WaymarkError,
} from "../errors.js";
import type { AnyEvent } from "../events.js";
import type { RunHandle, RunState } from "../run/handles/handle.js";
import { type Beginning, type Look, type RunSource, SourceHandle } from "../run/handles/source.js";
import { errorOf, loadIfAny } from "../run/handles/stored.js";
import { changeRun } from "../run/pauses/pauses.js";
import type { State } from "../state/state.js";
import { crossedError } from "./failure.js";
import { follow, type QueueDeps, type RunInQueue } from "./following.js";
import { type Failure, type JobPlace, jobIdOf, jobOptions, questionOf, toText } from "./job.js";
import { cancelled, isCancelled, jobOf, putBack } from "./submitted.js";
import { answerRun, MOST_LOOKS, promote, SOON, wakeUp } from "./wake.js";

/**
 * The handle of a run that is, or was, in the queue. Returned by {@link Client.submit} and {@link Client.run}. Each
 * method throws a ConfigError if the client is closed, also while it waits, and a WaymarkError with the code `QUEUE` if
 * the queue can't be reached or does not respond within `connection.statementTimeout`.
 *
 * - `result` waits for the run's end, through pauses and restarts. If the run failed for good, it throws an
 *   ExecutionError whose `cause` has the name and message of the node's error; an error of the graph or its checkpoints
 *   has its own class, code and fields, unless those are too large for the queue: then that `cause` is all of it.
 * - `events` are those of the queue, and those of the graph that the client's `log` has or, without one, that the
 *   worker's `events` option selects. With `from: "start"` what the log has so far comes first, and the saved steps that
 *   it does not have.
 * - `cancel` removes the run from the queue, or aborts the `signal` of its node within about a second. The run stays in
 *   the store, even if it has not begun, and {@link QueuedRun.resume} continues it from there.
 * - `answer` answers one pause of several, or a named one. An answer to a pause that the run has not reached yet is kept
 *   for it, unless a worker holds the run right now: then it throws a CheckpointConflictError.
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
export interface QueuedRun<D extends object = object> extends RunHandle<D> {
  /** The name of its graph. */
  readonly graph: string;
  /**
   * Continues the run: with the input it is paused for, or without if it only waits. A run that failed gets one more
   * attempt; one that was cancelled returns to the queue. Resolves when it is in the queue; `status` reports input that
   * the graph refused.
   *
   * @throws ConfigError if there is no such run, or there is input and the run is not paused.
   * @throws SerializationError if a checkpoint can't hold the input.
   */
  resume(input?: unknown): Promise<void>;
}

/** A run that is, or was, in the queue. */
class QueueSource<D extends object> implements RunSource<D> {
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
          await publish({ jobId, removed: "yes" });
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

/** @internal The handle of a run in the queue of a graph. */
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

/** The position of a run that is in no store. */
const nowhere = { checkpointNode: "", step: 0, data: {} };

/** The error of a run that was cancelled. */
function cancelledError<D extends object>(
  runId: string,
  saved: State<D> | undefined,
): ExecutionError {
  const state = saved ?? { runId, ...nowhere };
  const options = { nodeName: state.checkpointNode, state, path: [] };
  const what =
    saved === undefined
      ? "is neither in the queue nor in the store: it was never submitted, or removed"
      : saved.status === "pending"
        ? "was cancelled before it started"
        : "was cancelled";
  return new ExecutionError("ABORTED", `run ${show(runId)} ${what}`, options);
}

/** @internal The error of a run that failed for good, as its worker saw it. */
export function failedError<D extends object>(
  runId: string,
  saved: State<D> | undefined,
  failure: Failure | undefined,
  reason: string,
): WaymarkError {
  const crossed = failure && crossedError(failure);
  if (crossed !== undefined) return crossed;
  const code = failure?.code ?? "NODE_FAILED";
  // The checkpoint has the error of a node, not what kept the run from getting to one.
  const described = (isExecution(code) ? saved?.error : undefined) ?? failure;
  const cause = errorOf({ name: "Error", message: reason, ...described });
  const state = saved ?? { runId, ...nowhere };
  const nodeName = saved?.error?.node ?? state.checkpointNode;
  const options = { nodeName, state, path: [], cause };
  const text = failure?.message ?? cause.message;
  if (code === "CHECKPOINT_SAVE") return new CheckpointSaveError(text, options);
  return new ExecutionError(isExecution(code) ? code : "NODE_FAILED", text, options);
}

/** Whether an error of this code is an `ExecutionError`. */
function isExecution(code: string): code is ExecutionErrorCode {
  return ["ExecutionError", "CheckpointSaveError"].includes(errorTable[code as ErrorCode]?.class);
}

/** The state of a run, from the state of its job and its newest checkpoint. */
function stateOf<D extends object>(
  where: JobPlace,
  saved: State<D> | undefined,
): RunState["state"] {
  switch (where) {
    case "active":
      return "running";
    case "failed":
      return "failed";
    case "delayed": {
      const isPaused = saved?.status === "paused";
      return isPaused && saved.pauses.some(({ until }) => until === undefined)
        ? "paused"
        : "delayed";
    }
    case "completed":
    case "unknown":
      if (saved === undefined) return "unknown";
      return saved.status === "completed" ? "completed" : "cancelled";
    default:
      return "waiting";
  }
}
