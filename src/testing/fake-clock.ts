import { useClock } from "../clock.js";

/** A clock that moves only when it is told to. */
export interface FakeClock {
  /** Moves it forward. */
  advance(ms: number): void;
  /** Puts the real clock back. */
  restore(): void;
}

/**
 * Makes waymark take the time from a clock that stands still, from `start` on, in this process.
 *
 * @example
 * ```ts
 * import { State } from "waymark";
 * import { useFakeClock } from "waymark/testing";
 *
 * const clock = useFakeClock(Date.parse("2030-01-01T00:00:00Z"));
 * clock.advance(1500);
 * console.log(State.create({}).timestamp); // 2030-01-01T00:00:01.500Z
 * clock.restore();
 * ```
 */
export function useFakeClock(start = 0): FakeClock {
  let time = start;
  const restore = useClock({ now: () => time });
  return {
    advance: (ms) => {
      time += ms;
    },
    restore,
  };
}
