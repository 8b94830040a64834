/** Random numbers from 0 to 1 that a seed repeats. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 up to, not including, `end`. */
export function below(random: () => number, end: number): number {
  return Math.floor(random() * end);
}

/** The seed of this run: the one that is given by SEED, or a new one. */
export function seedOfRun(): number {
  return Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 32));
}
