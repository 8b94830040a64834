import { setMaxListeners } from "node:events";
import { ConfigError } from "../errors.js";

/** The time in which a client is open. A queue that is closed never answers, so nobody may wait for it. */
export class Opening {
  readonly #over = new AbortController();

  constructor() {
    // Everybody who waits for a run listens to it.
    setMaxListeners(0, this.#over.signal);
  }

  get isOver(): boolean {
    return this.#over.signal.aborted;
  }

  end(): void {
    this.#over.abort();
  }

  /** @throws ConfigError if it is over. */
  check(): void {
    if (this.isOver) throw closed();
  }

  /**
   * What `work` gives.
   *
   * @param signal - of who waits for it.
   * @throws ConfigError as soon as it is over, and the signal's reason as soon as that aborts.
   */
  async during<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.check();
    const over = this.#over.signal;
    let stop = (): void => {};
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(over.aborted ? closed() : signal?.reason);
      over.addEventListener("abort", stop);
      signal?.addEventListener("abort", stop);
    });
    try {
      return await Promise.race([work(), stopped]);
    } finally {
      over.removeEventListener("abort", stop);
      signal?.removeEventListener("abort", stop);
    }
  }
}

const closed = (): ConfigError => new ConfigError("client", "is closed: make a new one");
