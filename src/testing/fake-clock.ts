import { useClock } from "../clock.js";
import { check, number } from "../options.js";

/** A clock that moves only when you advance it. */
export interface FakeClock {
  /** How many timers are pending. */
  readonly waiting: number;
  /**
   * Advances the clock and fires the timers that are due, in order, letting the effects of each settle. It does
   * not wait for real work such as disk access: advance once {@link FakeClock.waiting} shows a timer.
   */
  advance(ms: number): Promise<void>;
  /** Restores the real clock. */
  restore(): void;
}

/** The last millisecond that a Date can represent. */
const LAST = 8.64e15;

const moment = check(
  "a time in milliseconds since 1970",
  (value) => typeof value === "number" && Math.abs(value) <= LAST,
);
const span = number(0, LAST);

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * Replaces waymark's clock in this process with one that stands still at `start`.
 *
 * @throws ConfigError if the time is invalid; `advance` too.
 *
 * @example
 * ```ts
 * import { State } from "waymark";
 * import { useFakeClock } from "waymark/testing";
 *
 * const clock = useFakeClock(Date.parse("2030-01-01T00:00:00Z"));
 * await clock.advance(1500);
 * console.log(State.create({}).timestamp); // 2030-01-01T00:00:01.500Z
 * clock.restore();
 * ```
 */
export function useFakeClock(start = 0): FakeClock {
  moment("start", start);
  let time = start;
  const timers = new Set<Timer>();
  const restore = useClock({
    now: () => time,
    after: (ms, callback) => {
      const timer = { at: time + ms, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  });
  return {
    get waiting() {
      return timers.size;
    },
    async advance(ms) {
      span("ms", ms);
      const end = time + ms;
      await settle();
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers.delete(due);
        time = due.at;
        due.callback();
        await settle();
      }
      time = end;
    },
    restore,
  };
}

/** Lets all pending promises and immediates run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
