import { setMaxListeners } from "node:events";
import { ConfigError } from "../errors.js";

/** Rejects pending calls when the client closes: a closed queue never answers. */
export class ClientLifetime {
  readonly #closed = new AbortController();

  constructor() {
    // Every pending call listens to it.
    setMaxListeners(0, this.#closed.signal);
  }

  get isClosed(): boolean {
    return this.#closed.signal.aborted;
  }

  close(): void {
    this.#closed.abort();
  }

  /** @throws ConfigError if the client is closed. */
  check(): void {
    if (this.isClosed) throw closed();
  }

  /**
   * Returns the result of `work`.
   *
   * @param signal - cancels the wait.
   * @throws ConfigError as soon as the client is closed, and the signal's reason as soon as it aborts.
   */
  async during<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.check();
    const ended = this.#closed.signal;
    let stop = (): void => {};
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(ended.aborted ? closed() : signal?.reason);
      ended.addEventListener("abort", stop);
      signal?.addEventListener("abort", stop);
    });
    try {
      return await Promise.race([work(), stopped]);
    } finally {
      ended.removeEventListener("abort", stop);
      signal?.removeEventListener("abort", stop);
    }
  }
}

const closed = (): ConfigError => new ConfigError("client", "is closed: make a new one");
