import type { Counts } from "../state/counts.js";

/** Counts the work of a run's nodes, on top of what was counted before it was resumed. */
export class Tally {
  #counts: Counts;

  constructor(before: Counts) {
    this.#counts = before;
  }

  /** How often a node has completed. */
  visits(node: string): number {
    return this.#counts.visitsOf(node);
  }

  /** Counts a node that has completed; 0 attempts and milliseconds if only visits are counted. */
  add(node: string, attempts: number, durationMs: number): void {
    this.#counts = this.#counts.with(node, attempts, durationMs);
  }

  /** All counts, as of now. */
  counts(): Counts {
    return this.#counts;
  }
}
