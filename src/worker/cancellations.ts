import type { ActiveRun } from "./active-run.js";
import type { Engine, RunQueue } from "./engine.js";
import { queueName } from "./names.js";

/** The queue in which requests to cancel lie. Nobody takes from it: all workers look at it. */
const QUEUE = "waymark.cancel";
/** How old a request may be before it is dropped, in milliseconds. */
const OLD = 60_000;
/** How often a worker looks for requests while it works on something, in milliseconds. */
const EVERY = 500;

interface Request {
  readonly queue: string;
  readonly jobId: string;
}

/** Requests to stop runs that a worker works on. */
export class Cancellations {
  readonly #queue: RunQueue;

  constructor(engine: Engine) {
    this.#queue = engine.queue(QUEUE);
  }

  /** Asks whoever works on a run to stop it; gives the way to take that back. */
  async request(queue: string, jobId: string): Promise<() => Promise<unknown>> {
    const id = encodeURIComponent(`${queue} ${jobId}`);
    const options = { jobId: id, removeOnComplete: true };
    await this.#queue.add("cancel", { queue, jobId } as object, options);
    return () => this.#queue.remove(id);
  }

  /** The requests there are; old ones, whose sender died, are dropped. */
  async #all(): Promise<Request[]> {
    const jobs = await this.#queue.getWaiting(0, 999);
    const found: Request[] = [];
    for (const job of jobs) {
      if (job === undefined) continue;
      if (Date.now() - job.timestamp > OLD) await this.#queue.remove(String(job.id));
      else found.push(job.data as unknown as Request);
    }
    return found;
  }

  /** Stops the runs that are asked to, for as long as there are any; gives the way to stop looking. */
  watch(active: ReadonlyMap<string, ActiveRun>, onError: (error: unknown) => void): () => void {
    let isLooking = false;
    const look = async (): Promise<void> => {
      if (isLooking || active.size === 0) return;
      isLooking = true;
      try {
        for (const { queue, jobId } of await this.#all()) {
          for (const run of active.values()) {
            if (run.jobId !== jobId || queueName(run.graph) !== queue) continue;
            run.stop("cancel", new Error(`run ${run.runId} was cancelled`));
          }
        }
      } catch (error) {
        onError(error);
      } finally {
        isLooking = false;
      }
    };
    const timer = setInterval(look, EVERY);
    timer.unref();
    return () => clearInterval(timer);
  }
}
