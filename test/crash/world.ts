import type { FileSystem } from "../../src/stores/disk/file-system.js";
import { CrashDisk, type Gate } from "../../src/testing/crash-file-system.js";
import { below, seeded } from "./random.js";

interface Process {
  /** The calls that wait for their turn. */
  readonly calls: (() => void)[];
  asleep: boolean;
  ended: boolean;
}

/**
 * Several processes on one disk, of which at any time one makes one call. Which one is drawn at
 * random, so that a seed is one of all the orders in which their calls can come.
 */
export class World {
  readonly disk = new CrashDisk();
  /** How many calls were made so far. */
  time = 0;
  readonly #random: () => number;
  readonly #gate: Gate;
  readonly #processes: Process[] = [];
  readonly #failures: unknown[] = [];

  constructor(seed: number, gate: Gate = () => {}) {
    this.#random = seeded(seed);
    this.#gate = gate;
  }

  chance(share: number): boolean {
    return this.#random() < share;
  }

  /** Starts a process on the disk. */
  start(live: (fileSystem: FileSystem) => Promise<void>): void {
    const process: Process = { calls: [], asleep: false, ended: false };
    const gate: Gate = async (call, path) => {
      await new Promise<void>((resolve) => process.calls.push(resolve));
      await this.#gate(call, path);
    };
    this.#processes.push(process);
    live(this.disk.mount(gate, true))
      .catch((error: unknown) => this.#failures.push(error))
      .finally(() => {
        process.ended = true;
      });
  }

  /** Lets the processes run until all have ended. Some fall asleep for long; some are killed, if `kills` says so. */
  async run(kills = 0): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const [failure] = this.#failures;
      if (failure !== undefined) throw failure;
      const living = this.#processes.filter(({ ended }) => !ended);
      if (living.length === 0) return;
      const ready = living.filter(({ calls }) => calls.length > 0);
      const awake = ready.filter(({ asleep }) => !asleep);
      const chosen = this.#pick(awake.length > 0 ? awake : ready);
      if (chosen === undefined) continue;
      // Old knowledge is what makes a writer dangerous, so that has to be frequent.
      chosen.asleep = this.chance(0.03);
      if (this.chance(0.02)) for (const process of living) process.asleep = false;
      if (this.chance(kills)) chosen.ended = true;
      else this.#letOne(chosen);
    }
  }

  #letOne(process: Process): void {
    const call = this.#pick(process.calls);
    if (call === undefined) return;
    process.calls.splice(process.calls.indexOf(call), 1);
    this.time++;
    call();
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[below(this.#random, items.length)];
  }
}
