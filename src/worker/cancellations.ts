import { now } from "../clock.js";
import type { ActiveRun } from "./active-run.js";
import type { Engine, RunQueue } from "./engine.js";
import { queueName } from "./job.js";

/** The queue of cancellation requests. No worker takes jobs from it: all of them read it. */
const QUEUE = "waymark.cancel";
/** The age at which a request is dropped, in milliseconds. */
const OLD = 60_000;
/** The age at which a sender that still needs its request renews it. */
const AGAIN = OLD / 2;
/** How often a worker that has runs reads the requests, in milliseconds. */
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

  /**
   * Asks whichever worker has the run to stop it. `ask` must be called until it has stopped; `takeBack` withdraws the
   * request.
   */
  request(queue: string, jobId: string): { ask(): Promise<void>; takeBack(): Promise<void> } {
    const id = encodeURIComponent(`${queue} ${jobId}`);
    let asked: number | undefined;
    const takeBack = async (): Promise<void> => {
      if (asked !== undefined) await this.#queue.remove(id);
      asked = undefined;
    };
    const ask = async (): Promise<void> => {
      // The worker may have died, and the next one must not mistake this for an old request.
      if (asked !== undefined && now() - asked > AGAIN) await takeBack();
      if (asked !== undefined) return;
      const options = { jobId: id, removeOnComplete: true };
      await this.#queue.add("cancel", { queue, jobId } as object, options);
      asked = now();
    };
    return { ask, takeBack };
  }

  /** The current requests; old ones, whose sender died, are dropped. */
  async #all(): Promise<Request[]> {
    const jobs = await this.#queue.getWaiting(0, 999);
    const found: Request[] = [];
    for (const job of jobs) {
      if (job === undefined) continue;
      if (now() - job.timestamp > OLD) await this.#queue.remove(String(job.id));
      else found.push(job.data as unknown as Request);
    }
    return found;
  }

  /** Stops runs on request, while there are any; returns a function that stops watching. */
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
