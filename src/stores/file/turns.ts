/** Lets one thing happen after the other, in the order in which they were asked for. */
export class Turns {
  #last: Promise<void> | undefined;

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#last === undefined;
  }

  /** Does something once all that was asked for before is over: at once, when that is nothing. */
  take<T>(action: () => Promise<T>): Promise<T> {
    const before = this.#last;
    let end: () => void = () => {};
    const last = new Promise<void>((resolve) => {
      end = resolve;
    });
    this.#last = last;
    const result = before === undefined ? action() : before.then(action);
    const over = (): void => {
      if (this.#last === last) this.#last = undefined;
      end();
    };
    result.then(over, over);
    return result;
  }
}
