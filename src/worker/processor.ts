import { type Claim, claimIfAble } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { messageOf } from "../errors.js";
import { random } from "../random.js";
import { borrowed } from "../run/loop/control.js";
import { errorName } from "../run/loop/failure.js";
import { type AnyGraph, StateGraph } from "../run/state-graph.js";
import { ActiveRun, fenced, leaseTimes } from "./active-run.js";
import { type AdvanceDeps, advance, type Outcome } from "./advance.js";
import { type BullMQ, GRACE, inTime } from "./backend.js";
import { failureOf } from "./failure.js";
import { type JobQueue, type JobResult, type RunJob, runIdOf, toKept } from "./job.js";
import type { WorkerSettings } from "./options.js";

/** What a processor needs of its queue. */
export interface ProcessorQueue extends Pick<JobQueue, "getJob"> {
  /** Thrown after the processor has moved a job itself, or to make it fail for good. */
  readonly errors: Pick<BullMQ, "DelayedError" | "UnrecoverableError" | "WaitingError">;
  /** Moves a job that was taken before to the head of the queue. */
  putFirst(jobId: string): Promise<void>;
}

/** What a processor needs of its worker. */
export interface ProcessorDeps
  extends Omit<AdvanceDeps, "graph">,
    Pick<WorkerSettings, "lease" | "longestWait" | "onError"> {
  /** The runs that the worker works on, by id. */
  readonly active: Map<string, ActiveRun>;
  /** Aborts when the worker closes. */
  readonly draining: AbortSignal;
}

/** An error with the delay after which the queue should retry the job. */
export class RunFailure extends Error {
  /** In milliseconds. */
  readonly retryAfter: number;

  constructor(error: unknown, retryAfter: number) {
    super(toKept(messageOf(error)), { cause: error });
    this.name = toKept(errorName(error));
    this.retryAfter = retryAfter;
  }
}

/** The longest time that a run waits for input before a worker checks it again, in milliseconds. */
export const YEAR = 365 * 24 * 60 * 60 * 1000;

/** The longest time that a run too new for a worker waits before another one checks it, in milliseconds. */
const LONGEST_BOUNCE = 5000;

/**
 * Works on the runs of one graph: claims each, advances it as far as possible, and reports the outcome to the queue.
 */
export class RunProcessor {
  readonly #deps: ProcessorDeps;
  readonly #advanceDeps: AdvanceDeps;
  readonly #queue: ProcessorQueue;

  constructor(graph: AnyGraph, deps: ProcessorDeps, queue: ProcessorQueue) {
    const { store, active, draining, longestWait } = deps;
    const claim = async (_store: unknown, runId: string): Promise<Claim | undefined> => {
      const held = active.get(runId)?.claim;
      return held && borrowed(held);
    };
    this.#deps = deps;
    const inner = StateGraph.inside(graph, fenced(store, active), draining, longestWait, { claim });
    this.#advanceDeps = { ...deps, graph: inner };
    this.#queue = queue;
  }

  /** Called by BullMQ with a job. */
  async process(job: RunJob, token: string): Promise<JobResult> {
    const { graph } = this.#advanceDeps;
    if (job.data.cancelled === true) return { status: "cancelled" };
    if ((job.data.version ?? 0) > graph.version) {
      return this.#settle(job, token, { kind: "newer" });
    }
    const { active, store, lease } = this.#deps;
    const ttl = leaseTimes(lease).claim;
    const jobId = String(job.id);
    const runId = runIdOf(jobId);
    // A run whose lease was lost may still be stopping here.
    if (active.has(runId)) return this.#settle(job, token, { kind: "elsewhere" });
    const run = new ActiveRun(runId, graph.name, jobId);
    active.set(runId, run);
    let outcome: Outcome;
    try {
      const claim = await claimIfAble(store, runId, { ttl });
      outcome = claim === undefined ? { kind: "elsewhere" } : await this.#advance(job, run, claim);
    } finally {
      active.delete(runId);
    }
    return this.#settle(job, token, outcome);
  }

  async #advance(job: RunJob, run: ActiveRun, claim: Claim): Promise<Outcome> {
    const { lost } = claim;
    run.claim = claim;
    const stop = (): void => run.stop("lost", lost?.reason);
    lost?.addEventListener("abort", stop);
    if (lost?.aborted) stop();
    try {
      return await advance(job, run, this.#advanceDeps);
    } finally {
      lost?.removeEventListener("abort", stop);
      // Publishing events must not hold up the run.
      await inTime(run.sent, GRACE);
      // A claim that can't be released expires by itself.
      await claim.release().catch(this.#deps.onError);
    }
  }

  /** Reports the outcome of a job to the queue. */
  async #settle(job: RunJob, token: string, outcome: Outcome): Promise<JobResult> {
    const { lease } = this.#deps;
    const { errors } = this.#queue;
    switch (outcome.kind) {
      case "completed":
      case "cancelled":
        return { status: outcome.kind };
      case "handed-over":
        return this.#move(async () => {
          await job.moveToWait(token);
          await this.#queue.putFirst(String(job.id));
        }, new errors.WaitingError());
      case "elsewhere":
        return this.#delay(job, token, now() + Math.max(lease / 8, 25));
      case "lost":
        // Counts as an attempt if nobody else has the run: otherwise a run that hangs its worker would be retried
        // forever.
        throw new RunFailure(new Error("the claim on the run was lost"), Math.max(lease / 8, 25));
      case "newer": {
        const wait = Math.min(250 * job.attemptsStarted, lease, LONGEST_BOUNCE);
        return this.#delay(job, token, now() + wait * (0.75 + random() / 2));
      }
      case "paused": {
        if (outcome.refused !== undefined) await this.#refuse(job, outcome.refused);
        return this.#delay(job, token, outcome.until ?? now() + YEAR);
      }
      case "failed": {
        const { error, retryAfter } = outcome;
        if (retryAfter !== undefined) throw new RunFailure(error, retryAfter);
        await job.updateData({ ...job.data, failure: failureOf(error) });
        throw new errors.UnrecoverableError(toKept(messageOf(error)));
      }
    }
  }

  #delay(job: RunJob, token: string, until: number): Promise<never> {
    // Redis can't store a time after 2039 exactly.
    const moment = Math.ceil(Math.min(until, now() + YEAR));
    return this.#move(
      () => job.moveToDelayed(moment, token),
      new this.#queue.errors.DelayedError(),
    );
  }

  /** Moves a job. If another worker has it already, or the server is unreachable, the queue recovers it. */
  async #move(move: () => Promise<unknown>, done: Error): Promise<never> {
    await move().catch(this.#deps.onError);
    throw done;
  }

  /** Records why the input was refused, and drops it unless newer input has arrived. */
  async #refuse(job: RunJob, refused: string): Promise<void> {
    const newest = await this.#queue.getJob(String(job.id));
    if (newest?.data.input?.value !== job.data.input?.value) return;
    const { input: _, ...rest } = newest?.data ?? job.data;
    await job.updateData({ ...rest, refused: toKept(refused) });
  }
}
