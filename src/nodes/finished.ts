import type { Saves } from "../graph/node.js";
import type { RunContext } from "../run/visit/context.js";

/** How many results make a full piece. */
const PIECE = 256;

/**
 * The results of a list's items, by item id, as a node remembers them. With `saves: "item"` a result is saved as
 * soon as the previous save is done, together with all that arrived meanwhile: slow items are saved one by one, fast
 * ones in batches. A result is written at most twice, so its cost does not grow with the length of the list.
 */
export class Finished<D extends object> {
  readonly #context: RunContext<D>;
  /** How many results to collect before saving them. */
  readonly #every: number;
  readonly #abort: AbortController;
  #count: number;
  /** How many pieces are full. */
  #pieces = 0;
  /** What was remembered since the last full piece, and its keys. */
  readonly #open = new Map<string, unknown>();
  readonly #keys: string[] = [];
  /** What is not remembered yet, and what its items no longer need. */
  readonly #fresh = new Map<string, unknown>();
  readonly #spent: RunContext<D>[] = [];
  #saving: Promise<void> | undefined;
  #unsaved: { readonly error: unknown } | undefined;

  /** @param abort - aborted when a save fails. */
  constructor(context: RunContext<D>, saves: Saves, abort: AbortController) {
    this.#context = context;
    this.#every = saves === "item" ? 1 : saves === "layer" ? Number.POSITIVE_INFINITY : saves;
    this.#abort = abort;
    while (context.recall(fullKey(this.#pieces)) !== undefined) this.#pieces++;
    while (context.recall(this.#nextKey()) !== undefined) this.#addOpen(this.#nextKey());
    this.#count = this.known().size;
  }

  /** Adds the result of an item. Returns a promise to wait for if the store is too far behind. */
  add(id: string, value: unknown, item: RunContext<D>): Promise<void> | undefined {
    this.#fresh.set(id, value);
    this.#count++;
    if (item.hasKeys) this.#spent.push(item);
    if (this.#fresh.size < this.#every) return undefined;
    this.#saving ??= this.#save();
    // A share of the total, so that the amount written stays proportional to the number of results.
    const most = Math.max(PIECE, this.#every, this.#count / 8);
    return this.#fresh.size < most ? undefined : this.#saving;
  }

  /** All results by id, after the save under way; throws its error if a save has failed. */
  async results(): Promise<Map<string, unknown>> {
    await this.#saving;
    if (this.#unsaved !== undefined) throw this.#unsaved.error;
    return this.known();
  }

  /** All results so far, by id. */
  known(): Map<string, unknown> {
    const full = Array.from({ length: this.#pieces }, (_, index) => this.#piece(fullKey(index)));
    return new Map([...full.flat(), ...this.#open, ...this.#fresh]);
  }

  /** The node ends without completing: unsaved results are left for its next save and its next attempt. */
  leave(): void {
    if (this.#fresh.size > 0) this.#store((key, value) => this.#context.keep(key, value));
  }

  #piece(key: string): [id: string, result: unknown][] {
    return Object.entries(this.#context.recall(key) ?? {});
  }

  #nextKey(): string {
    return `${fullKey(this.#pieces)}.${this.#keys.length}`;
  }

  async #save(): Promise<void> {
    try {
      while (this.#fresh.size >= this.#every) {
        let saved: Promise<void> | undefined;
        this.#store((key, value) => {
          saved = this.#context.remember(key, value);
          // In an abandoned attempt `recall` throws as well, and then nobody awaits this promise.
          saved.catch(() => {});
        });
        await saved;
      }
    } catch (error) {
      this.#unsaved = { error };
      this.#abort.abort(error);
    } finally {
      this.#saving = undefined;
    }
  }

  /** Moves the fresh results to where the node remembers them. */
  #store(put: (key: string, value: object) => void): void {
    const isFull = this.#open.size + this.#fresh.size >= PIECE;
    // Synchronously with `put`, so that no checkpoint has neither.
    for (const one of this.#spent.splice(0)) one.forgetAll();
    for (const key of isFull ? this.#keys.splice(0) : []) this.#context.forget(key);
    if (isFull) {
      put(fullKey(this.#pieces++), Object.fromEntries([...this.#open, ...this.#fresh]));
      this.#open.clear();
    } else {
      const key = this.#nextKey();
      put(key, Object.fromEntries(this.#fresh));
      this.#addOpen(key);
    }
    this.#fresh.clear();
  }

  /** The remembered values are frozen, so they are not copied again. */
  #addOpen(key: string): void {
    this.#keys.push(key);
    for (const [id, result] of this.#piece(key)) this.#open.set(id, result);
  }
}

/** The key of a full piece. */
function fullKey(index: number): string {
  return `results ${index}`;
}
