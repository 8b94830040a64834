import type { NodeContext } from "../graph/node.js";

/** How many results are put together into one piece. */
const PIECE = 256;

type Piece = Readonly<Record<number, unknown>>;

/**
 * The results of a list's items as a node remembers them. A result is saved as soon as the save before
 * it is done, together with all that came meanwhile: slow items are saved one by one, fast ones many
 * at a time. A result is written twice at most, so that a hundred thousand cost no more each than ten.
 */
export class Finished<D extends object> {
  readonly #context: NodeContext<D>;
  readonly #failed: (error: unknown) => void;
  readonly #before = new Set<number>();
  #count = 0;
  /** How many pieces are full. */
  #pieces = 0;
  /** What is remembered since, and under which keys. */
  #open: Record<number, unknown> = {};
  #size = 0;
  readonly #keys: string[] = [];
  /** What is not remembered yet, and the keys that its items need no more. */
  #fresh: Record<number, unknown> = {};
  #waiting = 0;
  readonly #spent: string[] = [];
  #saving: Promise<void> | undefined;

  /** @param failed - is told when a save fails. */
  constructor(context: NodeContext<D>, failed: (error: unknown) => void) {
    this.#context = context;
    this.#failed = failed;
    for (const piece of this.#full()) {
      this.#pieces++;
      for (const index of Object.keys(piece)) this.#before.add(Number(index));
    }
    for (;;) {
      const key = this.#nextKey();
      const batch = context.recall(key);
      if (batch === undefined) break;
      Object.assign(this.#open, batch);
      this.#keys.push(key);
    }
    for (const index of Object.keys(this.#open)) this.#before.add(Number(index));
    this.#size = Object.keys(this.#open).length;
    this.#count = this.#before.size;
  }

  /** How many items were done before this attempt. */
  get before(): number {
    return this.#before.size;
  }

  /** Whether an item was done before this attempt. */
  has(index: number): boolean {
    return this.#before.has(index);
  }

  /** Keeps a result. A promise says that the store is too far behind. */
  add(index: number, value: unknown, spent: readonly string[] = []): Promise<void> | undefined {
    this.#fresh[index] = value;
    this.#count++;
    this.#waiting++;
    this.#spent.push(...spent);
    this.#saving ??= this.#save();
    // A share of all, so that what the saves write stays in proportion to what there is.
    return this.#waiting < Math.max(PIECE, this.#count / 8) ? undefined : this.#saving;
  }

  /** All results, in the order of the items, once they are saved. */
  async results(total: number): Promise<unknown[]> {
    await this.#saving;
    const results = new Array<unknown>(total);
    for (const piece of [...this.#full(), this.#open]) {
      for (const [index, value] of Object.entries(piece)) results[Number(index)] = value;
    }
    // This passes over those that are not there.
    return results.filter(() => true);
  }

  *#full(): Generator<Piece> {
    for (let index = 0; ; index++) {
      const piece = this.#context.recall(`results ${index}`);
      if (piece === undefined) return;
      yield piece as Piece;
    }
  }

  #nextKey(): string {
    return `results ${this.#pieces}.${this.#keys.length}`;
  }

  async #save(): Promise<void> {
    try {
      while (this.#waiting > 0) await this.#saveFresh();
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#saving = undefined;
    }
  }

  #saveFresh(): Promise<void> {
    const context = this.#context;
    const isFull = this.#size + this.#waiting >= PIECE;
    const spent = this.#spent.splice(0);
    if (isFull) spent.push(...this.#keys.splice(0));
    // In one go with what is remembered, so that no checkpoint has neither.
    for (const key of spent) context.forget(key);
    const key = isFull ? `results ${this.#pieces++}` : this.#nextKey();
    const saved = context.remember(key, isFull ? { ...this.#open, ...this.#fresh } : this.#fresh);
    // An attempt that was given up can't recall either: then nobody waits for this one.
    saved.catch(() => {});
    if (isFull) {
      this.#open = {};
      this.#size = 0;
    } else {
      this.#keys.push(key);
      // What was remembered is frozen, and is not copied again.
      Object.assign(this.#open, context.recall(key));
      this.#size += this.#waiting;
    }
    this.#fresh = {};
    this.#waiting = 0;
    return saved;
  }
}
