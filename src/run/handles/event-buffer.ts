import { type Deferred, defer, unlessAborted } from "../../concurrency.js";
import type { AnyEvent } from "../../events.js";

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

  /** The events from the start or from now on, until the last. A reader that is too slow misses the oldest. */
  read(from: "start" | "now", signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    return this.#read(from === "start" ? 0 : this.#dropped + this.#events.length, signal);
  }

  async *#read(first: number, signal: AbortSignal): AsyncGenerator<AnyEvent, void, undefined> {
    for (let next = first; ; ) {
      signal.throwIfAborted();
      next = Math.max(next, this.#dropped);
      const event = this.#events[next - this.#dropped];
      if (event !== undefined) {
        next++;
        yield event;
      } else if (this.#ended) {
        return;
      } else {
        this.#more ??= defer();
        await unlessAborted(this.#more.promise, signal);
      }
    }
  }

  #wake(): void {
    const more = this.#more;
    this.#more = undefined;
    more?.resolve();
  }
}
