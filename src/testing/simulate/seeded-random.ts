/** Random numbers that are the same for a seed on every machine. */
export class SeededRandom {
  #state: number;

  /** @param parts - what makes these numbers different from others of the same simulation. */
  constructor(seed: number, ...parts: readonly number[]) {
    this.#state = seed >>> 0;
    for (const part of parts) this.#state = Math.imul(this.next() * 2 ** 32, 31) + part;
  }

  /** A number from 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    const state = this.#state;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer from `from` up to, not including, `to`. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(first: T, ...others: readonly T[]): T {
    return [first, ...others][this.between(0, others.length + 1)] ?? first;
  }
}
