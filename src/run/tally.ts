import { NodeCounts, NUMBERS } from "../state/steps.js";

/** Counts the work of a run's nodes, on top of what was counted before it was resumed. */
export class Tally {
  readonly #names: readonly string[];
  /** As in {@link NodeCounts}. */
  readonly #numbers: number[];

  /** @param names - of the graph's nodes, in order. */
  constructor(names: readonly string[], before: NodeCounts) {
    this.#names = before.namesWith(names);
    this.#numbers = before.numbersOf(this.#names);
  }

  /** How often a node has completed. */
  visits(index: number): number {
    return this.#numbers[NUMBERS * index] ?? 0;
  }

  /** Counts a node that has completed. */
  addVisit(index: number): void {
    const at = NUMBERS * index;
    this.#numbers[at] = (this.#numbers[at] ?? 0) + 1;
  }

  /** Adds the time and attempts of a visit. */
  addWork(index: number, attempts: number, durationMs: number): void {
    const numbers = this.#numbers;
    const at = NUMBERS * index;
    numbers[at + 1] = (numbers[at + 1] ?? 0) + attempts;
    numbers[at + 2] = (numbers[at + 2] ?? 0) + durationMs;
  }

  /** All counts, as of now. */
  counts(): NodeCounts {
    return new NodeCounts(this.#names, this.#numbers.slice());
  }
}
