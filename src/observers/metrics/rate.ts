import { now } from "../../clock.js";

const SECONDS = 60;

/** How often something has happened in the last minute. */
export class Rate {
  readonly #counts = new Array<number>(SECONDS).fill(0);
  #second = 0;

  add(): void {
    this.#turn();
    const at = this.#second % SECONDS;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  get perMinute(): number {
    this.#turn();
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Forgets the seconds that are more than a minute old. */
  #turn(): void {
    const second = Math.floor(now() / 1000);
    const passed = Math.min(Math.abs(second - this.#second), SECONDS);
    for (let back = 0; back < passed; back++) this.#counts[(second - back) % SECONDS] = 0;
    this.#second = second;
  }
}
