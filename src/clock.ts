/** Where waymark gets the time from. Tests put a fake one in its place. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
}

let current: Clock = Date;
let lastMs = Number.NaN;
let lastIso = "";

/** Milliseconds since 1970, from the clock in use. */
export function now(): number {
  return current.now();
}

/** An ISO 8601 timestamp. Formatting costs more than a whole step, so one millisecond is formatted once. */
export function isoNow(): string {
  const ms = current.now();
  if (ms !== lastMs) {
    lastMs = ms;
    lastIso = new Date(ms).toISOString();
  }
  return lastIso;
}

/** Puts another clock in place; returns the way back. */
export function useClock(clock: Clock): () => void {
  const before = current;
  current = clock;
  return () => {
    current = before;
  };
}
