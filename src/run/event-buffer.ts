import { type Deferred, defer, unlessAborted } from "../concurrency.js";
import type { AnyEvent } from "../events.js";

/** How many events of a run are kept. */
const MOST = 10_000;

/** The newest events of one run, for any number of readers, each at its own position. */
export class EventBuffer {
  #events: AnyEvent[];
  /** How many events were dropped from the front. */
  #dropped = 0;
  #ended = false;
  #more: Deferred<void> | undefined;

  constructor(before: readonly AnyEvent[] = []) {
    this.#events = [...before];
  }

  add(event: AnyEvent): void {
    this.#events.push(event);
    // In bulk: dropping them one by one would move the whole array each time.
    if (this.#events.length >= 2 * MOST) {
      this.#events = this.#events.slice(-MOST);
      this.#dropped += MOST;
    }
    this.#wake();
  }

  /** Ends the stream for all readers. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /**
   * The events from the start or from now on, until the last. A reader that is too slow misses the oldest. A reader
   * that returns does not have to wait for another event.
   */
  read(
    from: "start" | "now",
    signal: AbortSignal | undefined,
  ): AsyncGenerator<AnyEvent, void, undefined> {
    const left = new AbortController();
    const events = this.#read(
      from === "start" ? 0 : this.#dropped + this.#events.length,
      signal,
      left.signal,
    );
    const leave = events.return.bind(events);
    // By itself, a generator handles `return` only after the pending `next` has settled.
    events.return = (value) => {
      left.abort();
      return leave(value);
    };
    return events;
  }

  async *#read(
    first: number,
    signal: AbortSignal | undefined,
    left: AbortSignal,
  ): AsyncGenerator<AnyEvent, void, undefined> {
    for (let next = first; ; ) {
      signal?.throwIfAborted();
      next = Math.max(next, this.#dropped);
      const event = this.#events[next - this.#dropped];
      if (event !== undefined) {
        next++;
        yield event;
      } else if (this.#ended) {
        return;
      } else {
        try {
          await unlessAborted(unlessAborted(this.#next(), signal), left);
        } catch (error) {
          if (left.aborted) return;
          throw error;
        }
      }
    }
  }

  #next(): Promise<void> {
    this.#more ??= defer();
    return this.#more.promise;
  }

  #wake(): void {
    const more = this.#more;
    this.#more = undefined;
    more?.resolve();
  }
}
