import { checkOptions, integer } from "../options.js";
import type { RunQueue } from "./engine.js";

/** How much of a graph may run at once, over all workers. The queue enforces it. */
export interface GraphLimits {
  /** The largest number of its runs at once; at least 1. `Infinity` removes the limit. */
  readonly concurrency?: number;
  /**
   * At most `max` of its runs are taken within `duration` milliseconds. A run that continues later counts again. A
   * `max` of `Infinity` removes the limit.
   */
  readonly rate?: {
    /** The number of runs. */
    readonly max: number;
    /** The length of the window, in milliseconds. */
    readonly duration: number;
  };
}

/** @throws ConfigError if a limit is invalid. */
export function checkLimits(name: string, limits: unknown): void {
  checkOptions(name, limits, {
    concurrency: integer(1, true),
    rate: (rate, value) => {
      checkOptions(rate, value, { max: integer(1, true), duration: integer(1) });
      const { max, duration } = value as Partial<NonNullable<GraphLimits["rate"]>>;
      integer(1, true)(`${rate}.max`, max);
      integer(1)(`${rate}.duration`, duration);
    },
  });
}

/** @internal Applies limits to the queue; omitted limits keep their value. */
export async function applyLimits(queue: RunQueue, limits: GraphLimits = {}): Promise<void> {
  const { concurrency, rate } = limits;
  if (concurrency === Number.POSITIVE_INFINITY) await queue.removeGlobalConcurrency();
  else if (concurrency !== undefined) await queue.setGlobalConcurrency(concurrency);
  if (rate?.max === Number.POSITIVE_INFINITY) await queue.removeGlobalRateLimit();
  else if (rate !== undefined) await queue.setGlobalRateLimit(rate.max, rate.duration);
}
