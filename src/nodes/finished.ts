import type { NodeContext } from "../graph/node.js";

/** How many results are remembered together. Only the newest piece is written to again. */
const PIECE = 256;

type Piece = Readonly<Record<number, unknown>>;

/**
 * The results of a list's items as a node remembers them. A result is saved as soon as the save before
 * it is done, together with all that came meanwhile: slow items are saved one by one, fast ones many
 * at a time.
 */
export class Finished<D extends object> {
  readonly #context: NodeContext<D>;
  readonly #failed: (error: unknown) => void;
  readonly #before = new Set<number>();
  #pieces = 0;
  #open: Record<number, unknown> = {};
  #size = 0;
  #unsaved = 0;
  /** What items that are done need no more. */
  #spent: string[] = [];
  #saving: Promise<void> | undefined;

  /** @param failed - is told when a save fails. */
  constructor(context: NodeContext<D>, failed: (error: unknown) => void) {
    this.#context = context;
    this.#failed = failed;
    for (const piece of this.#all()) {
      for (const index of Object.keys(piece)) this.#before.add(Number(index));
      this.#pieces++;
    }
  }

  /** How many items were done before this attempt. */
  get before(): number {
    return this.#before.size;
  }

  /** Whether an item was done before this attempt. */
  has(index: number): boolean {
    return this.#before.has(index);
  }

  /** Keeps a result. A promise says that too many wait for the store. */
  add(
    index: number,
    value: unknown,
    spent: readonly string[] | undefined,
  ): Promise<void> | undefined {
    this.#open[index] = value;
    this.#size++;
    this.#unsaved++;
    if (spent !== undefined) this.#spent.push(...spent);
    this.#saving ??= this.#save();
    return this.#unsaved < PIECE ? undefined : this.#saving;
  }

  /** All results, in the order of the items, once they are saved. */
  async results(total: number): Promise<unknown[]> {
    await this.#saving;
    const results = new Array<unknown>(total);
    for (const piece of this.#all()) {
      for (const [index, value] of Object.entries(piece)) results[Number(index)] = value;
    }
    // This passes over those that are not there.
    return results.filter(() => true);
  }

  *#all(): Generator<Piece> {
    for (let index = 0; ; index++) {
      const piece = this.#context.recall(keyOf(index));
      if (piece === undefined) return;
      yield piece as Piece;
    }
  }

  async #save(): Promise<void> {
    try {
      while (this.#unsaved > 0) {
        const key = keyOf(this.#pieces);
        const saved = this.#context.remember(key, this.#open);
        for (const spent of this.#spent) this.#context.forget(spent);
        this.#spent = [];
        this.#unsaved = 0;
        const full = this.#size >= PIECE;
        if (full) {
          this.#pieces++;
          this.#size = 0;
        }
        // What was remembered is frozen, and is not copied again with the next result.
        this.#open = full ? {} : { ...(this.#context.recall(key) as Piece) };
        await saved;
      }
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#saving = undefined;
    }
  }
}

function keyOf(index: number): string {
  return `results ${index}`;
}
