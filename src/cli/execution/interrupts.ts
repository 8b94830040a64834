import { sleep } from "../../clock.js";
import { exit } from "../exit.js";
import type { Io } from "../io.js";

/** Handles Ctrl-C: the first asks the run to stop, the second ends the process. */
export class Interrupts {
  readonly #controller = new AbortController();
  readonly #stop: () => void;

  constructor(io: Io, first: () => void) {
    this.#stop = io.onInterrupt(() => {
      if (this.happened) return io.exit(exit.interrupted);
      first();
      this.#controller.abort(new Error("interrupted"));
    });
  }

  /** Aborts at the first Ctrl-C. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether Ctrl-C was pressed. */
  get happened(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Waits, until the first Ctrl-C at most. */
  async sleep(ms: number): Promise<void> {
    await sleep(ms, this.signal).catch(() => {});
  }

  /** Stops listening. */
  end(): void {
    this.#stop();
  }
}
