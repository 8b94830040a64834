import { now } from "../clock.js";
import type { ActiveRun } from "./active-run.js";
import type { Engine, RunQueue } from "./engine.js";
import { queueName } from "./names.js";

/** The queue in which requests to cancel lie. Nobody takes from it: all workers look at it. */
const QUEUE = "waymark.cancel";
/** How old a request may be before it is dropped, in milliseconds. */
const OLD = 60_000;
/** How old one may be before whoever still needs it asks again. */
const AGAIN = OLD / 2;
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

  /** What asks whoever works on a run to stop it, for as long as it is called, and what takes that back. */
  request(queue: string, jobId: string): { ask(): Promise<void>; takeBack(): Promise<void> } {
    const id = encodeURIComponent(`${queue} ${jobId}`);
    let asked: number | undefined;
    const takeBack = async (): Promise<void> => {
      if (asked !== undefined) await this.#queue.remove(id);
      asked = undefined;
    };
    const ask = async (): Promise<void> => {
      // The worker may have died, and the next one must not take it for an old one.
      if (asked !== undefined && now() - asked > AGAIN) await takeBack();
      if (asked !== undefined) return;
      const options = { jobId: id, removeOnComplete: true };
      await this.#queue.add("cancel", { queue, jobId } as object, options);
      asked = now();
    };
    return { ask, takeBack };
  }

  /** The requests there are; old ones, whose sender died, are dropped. */
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
