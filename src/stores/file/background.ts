/** What a store does without being waited for. */
export class Background {
  readonly #tasks = new Set<Promise<void>>();

  /** Starts a task; what it fails with is told, never thrown. */
  start(task: () => Promise<unknown>, onError: (error: unknown) => void): void {
    const running: Promise<void> = task()
      .then(() => {}, onError)
      .finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}
