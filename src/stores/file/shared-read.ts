/**
 * Reads something for all who ask at about the same time. Each gets what was read after it asked, so
 * nobody is told what was before; those who ask while one read is under way share the next.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** What a read says that begins after this call. */
  get(): Promise<T> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      const reading = this.#read();
      this.#running = reading.catch(() => {});
      return reading;
    });
    return this.#next;
  }
}
