const LIMIT = 100;

/** The names of the last nodes of a run, however long it is. */
export class Path {
  #names: string[] = [];

  add(name: string): void {
    this.#names.push(name);
    if (this.#names.length === 2 * LIMIT) this.#names = this.#names.slice(LIMIT);
  }

  list(): readonly string[] {
    return this.#names.slice(-LIMIT);
  }
}
