import { exit } from "../exit.js";
import type { Io } from "../io.js";

/** Ctrl-C: the first time it asks the run to stop, the second time it ends the process. */
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

  /** Whether there was one. */
  get happened(): boolean {
    return this.#controller.signal.aborted;
  }

  /** Listens no more. */
  end(): void {
    this.#stop();
  }
}

/** Waits; less long when the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}
