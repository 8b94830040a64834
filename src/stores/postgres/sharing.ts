import { isRefused } from "./failure.js";

/** How many statements may be under way; what comes meanwhile goes together in the next. */
const UNDER_WAY = 2;
/** The most items, and about the most bytes, of one statement. */
const MOST_ITEMS = 100;
const MOST_BYTES = 1024 * 1024;

/** How items are asked for. */
export interface Shared<Item, Answer> {
  /** Asks for several by one statement; gives their answers in the same order. */
  together(items: readonly Item[]): Promise<Answer[]>;
  /** Asks for one, where that is faster. */
  alone?(item: Item): Promise<Answer>;
  bytes?(item: Item): number;
}

interface Waiting<Item, Answer> {
  readonly item: Item;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

/** One item alone is one statement; those that wait share one, and with it a round trip and a flush. */
export class Sharing<Item, Answer> {
  readonly #shared: Shared<Item, Answer>;
  #waiting: Waiting<Item, Answer>[] = [];
  #underWay = 0;

  constructor(shared: Shared<Item, Answer>) {
    this.#shared = shared;
  }

  ask(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#underWay < UNDER_WAY) this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#underWay++;
    while (this.#waiting.length > 0) await this.#answer(this.#take());
    this.#underWay--;
  }

  #take(): Waiting<Item, Answer>[] {
    const { bytes = () => 0 } = this.#shared;
    let sum = 0;
    const size = this.#waiting.findIndex(({ item }, index) => {
      sum += bytes(item);
      return index > 0 && (index === MOST_ITEMS || sum > MOST_BYTES);
    });
    return this.#waiting.splice(0, size < 0 ? this.#waiting.length : size);
  }

  async #answer(batch: readonly Waiting<Item, Answer>[]): Promise<void> {
    const [first] = batch;
    if (batch.length === 1 && first !== undefined) return this.#one(first);
    try {
      const answers = await this.#shared.together(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(answers[index] as Answer);
    } catch (error) {
      // One of them is to blame, and only that one is to suffer.
      if (isRefused(error)) await Promise.all(batch.map((one) => this.#one(one)));
      else for (const { reject } of batch) reject(error);
    }
  }

  async #one({ item, resolve, reject }: Waiting<Item, Answer>): Promise<void> {
    const { alone, together } = this.#shared;
    try {
      if (alone !== undefined) return resolve(await alone(item));
      const [answer] = await together([item]);
      resolve(answer as Answer);
    } catch (error) {
      reject(error);
    }
  }
}
