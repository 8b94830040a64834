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

  /** @throws ConfigError when it is over. */
  check(): void {
    if (this.isOver) throw closed();
  }

  /**
   * What `work` gives.
   *
   * @throws ConfigError as soon as it is over.
   */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.check();
    const { signal } = this.#over;
    let stop = (): void => {};
    const over = new Promise<never>((_, reject) => {
      stop = () => reject(closed());
      signal.addEventListener("abort", stop);
    });
    try {
      return await Promise.race([work(), over]);
    } finally {
      signal.removeEventListener("abort", stop);
    }
  }
}

const closed = (): ConfigError => new ConfigError("client", "is closed: make a new one");
