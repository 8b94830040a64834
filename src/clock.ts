/** The source of time in waymark. Tests replace it with a fake one. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls back once after this many milliseconds; returns a function that cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** Milliseconds by a clock that can't be set, from an arbitrary origin; the system's if absent. */
  monotonic?(): number;
  /** Like `after`, but uses `monotonic` and does not keep the process alive; the system's if absent. */
  background?(ms: number, callback: () => void): () => void;
}

/** The longest delay of a timer, in milliseconds: about 24 days. A longer one would fire immediately. */
export const LONGEST_TIMER = 2 ** 31 - 1;

const systemClock: Clock = {
  now: Date.now,
  after: (ms, callback) => {
    let timer: ReturnType<typeof setTimeout>;
    const wait = (left: number): void => {
      const then = left > LONGEST_TIMER ? () => wait(left - LONGEST_TIMER) : callback;
      timer = setTimeout(then, Math.min(left, LONGEST_TIMER));
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

let current: Clock = systemClock;
let lastMs = Number.NaN;
let lastIso = "";

/** Milliseconds since 1970, from the clock in use. */
export function now(): number {
  return current.now();
}

/** The current time, ISO 8601. Formatting costs more than a whole step, so each millisecond is formatted once. */
export function isoNow(): string {
  const ms = current.now();
  if (ms !== lastMs) {
    lastMs = ms;
    lastIso = new Date(ms).toISOString();
  }
  return lastIso;
}

/** Milliseconds between two ISO 8601 timestamps, never below 0: the clock may have been set back meanwhile. */
export function msBetween(from: string, to: string): number {
  return from === to ? 0 : Math.max(Date.parse(to) - Date.parse(from), 0);
}

/** Milliseconds since a moment of `now()`, never below 0: the clock may have been set back meanwhile. */
export function msSince(moment: number): number {
  return Math.max(current.now() - moment, 0);
}

/** A point in time by two clocks: one that can't be set, and one that also runs while the machine sleeps. */
export interface Moment {
  readonly steady: number;
  readonly wall: number;
}

/**
 * The current moment, by the clocks that other processes use: a fake clock does not affect it, the simulator
 * does.
 */
export function moment(): Moment {
  return {
    steady: monotonic(),
    wall: current.monotonic === undefined ? Date.now() : current.now(),
  };
}

/** Milliseconds since a moment, by whichever clock shows more. */
export function elapsedSince({ steady, wall }: Moment): number {
  const here = moment();
  return Math.max(here.steady - steady, here.wall - wall);
}

/** Calls back once after this many milliseconds; returns a function that cancels it. */
export function after(ms: number, callback: () => void): () => void {
  return current.after(ms, callback);
}

/** Milliseconds by a clock that can't be set and that also runs while the process is suspended. */
export function monotonic(): number {
  return current.monotonic === undefined ? performance.now() : current.monotonic();
}

/** `after` for leases and the like: does not keep the process alive, and a fake clock does not affect it. */
export function inBackground(ms: number, callback: () => void): () => void {
  if (current.background !== undefined) return current.background(ms, callback);
  const timer: unknown = setTimeout(callback, Math.min(ms, LONGEST_TIMER));
  if (isUnrefable(timer)) timer.unref();
  return () => clearTimeout(timer as ReturnType<typeof setTimeout>);
}

/** `sleep` for claims and locks: keeps the process alive, and a fake clock does not affect it. */
export function steadySleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    if (current.background === undefined) setTimeout(resolve, ms);
    else current.after(ms, resolve);
  });
}

/** A browser's timer is a number. */
function isUnrefable(timer: unknown): timer is { unref(): void } {
  return typeof timer === "object" && timer !== null && "unref" in timer;
}

/** Waits; rejects with a signal's reason as soon as one aborts. */
export function sleep(ms: number, ...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", abort);
      cancel();
    };
    const abort = (): void => {
      stop();
      reject(signals.find((signal) => signal.aborted)?.reason);
    };
    const cancel = current.after(ms, () => {
      stop();
      resolve();
    });
    for (const signal of signals) signal.addEventListener("abort", abort);
    if (signals.some((signal) => signal.aborted)) abort();
  });
}

/** Waits for a promise, for so many milliseconds at most: then it has, or throws, what `late` does. */
export async function unlessLate<T, L>(
  promise: Promise<T>,
  ms: number,
  late: () => L,
  start = after,
): Promise<T | L> {
  let cancel = (): void => {};
  const isOver = new Promise<void>((resolve) => {
    cancel = start(ms, resolve);
  });
  try {
    return await Promise.race([promise, isOver.then(late)]);
  } finally {
    cancel();
  }
}

/** The error of an action that took too long. */
export function timeoutError(action: string, ms: number): Error {
  const error = new Error(`${action} took longer than its timeout of ${ms} ms`);
  error.name = "TimeoutError";
  return error;
}

/** Installs another clock; returns a function that restores the previous one. */
export function useClock(clock: Clock): () => void {
  const before = current;
  current = clock;
  return () => {
    current = before;
  };
}
