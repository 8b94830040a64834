/** The newest of many records. Adding one costs the same however many there are. */
export class NewestLog<T> {
  /** Append-only, so that it can be shared by instances of different length. */
  readonly #log: T[];
  readonly #length: number;
  readonly #most: number;

  private constructor(log: T[], most: number) {
    this.#log = log;
    this.#length = log.length;
    this.#most = most;
  }

  /** A log of all these records, whose limit is at least their number. */
  static of<T>(records: Iterable<T>, most: number): NewestLog<T> {
    const log = [...records];
    return new NewestLog(log, Math.max(most, log.length));
  }

  /** How much of the log belongs to it; without a limit, how many records were added. */
  get length(): number {
    return this.#length;
  }

  /** The same log with another limit. */
  withLimit(most: number): NewestLog<T> {
    return most === this.#most ? this : new NewestLog(this.list(), most);
  }

  with(record: T): NewestLog<T> {
    const isShared = this.#log.length === this.#length && this.#length < 2 * this.#most;
    const log = isShared ? this.#log : this.list();
    log.push(record);
    return new NewestLog(log, this.#most);
  }

  /** The newest records, oldest first, in an array of its own. */
  list(): T[] {
    const first = Math.max(0, this.#length - this.#most);
    return this.#log.slice(first, this.#length);
  }

  get isEmpty(): boolean {
    return this.#length === 0 || this.#most === 0;
  }
}
