const LIMIT = 100;

/** The names of the last nodes of a run: a ring buffer, because one is added at every step. */
export class Path {
  readonly #names = new Array<string>(LIMIT).fill("");
  #count = 0;

  add(name: string): void {
    this.#names[this.#count % LIMIT] = name;
    this.#count++;
  }

  list(): readonly string[] {
    const oldest = this.#count % LIMIT;
    return this.#count < LIMIT
      ? this.#names.slice(0, this.#count)
      : [...this.#names.slice(oldest), ...this.#names.slice(0, oldest)];
  }
}
