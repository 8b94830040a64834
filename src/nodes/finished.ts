import type { Saves } from "../graph/node.js";
import type { RunContext } from "../run/visit/context.js";
import { setKey } from "../state/shape.js";

/** How many results make a full piece. */
const PIECE = 256;

type Piece = Readonly<Record<string, unknown>>;

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
  #open: Record<string, unknown> = {};
  #size = 0;
  readonly #keys: string[] = [];
  /** What is not remembered yet, and what its items no longer need. */
  #fresh: Record<string, unknown> = {};
  #waiting = 0;
  readonly #spent: RunContext<D>[] = [];
  #saving: Promise<void> | undefined;
  #unsaved: { readonly error: unknown } | undefined;

  /** @param abort - aborted when a save fails. */
  constructor(context: RunContext<D>, saves: Saves, abort: AbortController) {
    this.#context = context;
    this.#every = saves === "item" ? 1 : saves === "layer" ? Number.POSITIVE_INFINITY : saves;
    this.#abort = abort;
    this.#pieces = [...this.#full()].length;
    for (;;) {
      const key = this.#nextKey();
      const batch = context.recall(key);
      if (batch === undefined) break;
      this.#addTo(this.#open, batch as Piece);
      this.#keys.push(key);
    }
    this.#size = Object.keys(this.#open).length;
    this.#count = this.known().size;
  }

  /** Adds the result of an item. Returns a promise to wait for if the store is too far behind. */
  add(id: string, value: unknown, item: RunContext<D>): Promise<void> | undefined {
    setKey(this.#fresh, id, value);
    this.#count++;
    this.#waiting++;
    if (item.hasKeys) this.#spent.push(item);
    if (this.#waiting < this.#every) return undefined;
    this.#saving ??= this.#save();
    // A share of the total, so that the amount written stays proportional to the number of results.
    const most = Math.max(PIECE, this.#every, this.#count / 8);
    return this.#waiting < most ? undefined : this.#saving;
  }

  /** All results by id, after the save under way; throws its error if a save has failed. */
  async results(): Promise<Map<string, unknown>> {
    await this.#saving;
    if (this.#unsaved !== undefined) throw this.#unsaved.error;
    return this.known();
  }

  /** All results so far, by id. */
  known(): Map<string, unknown> {
    const results = new Map<string, unknown>();
    for (const piece of [...this.#full(), this.#open, this.#fresh]) {
      for (const [id, value] of Object.entries(piece)) results.set(id, value);
    }
    return results;
  }

  /** The node ends without completing: unsaved results are left for its next save and its next attempt. */
  leave(): void {
    if (this.#waiting > 0) this.#store((key, value) => this.#context.keep(key, value));
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
      while (this.#waiting >= this.#every) {
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
  #store(put: (key: string, value: Piece) => void): void {
    const context = this.#context;
    const isFull = this.#size + this.#waiting >= PIECE;
    // Synchronously with `put`, so that no checkpoint has neither.
    for (const one of this.#spent.splice(0)) one.forgetAll();
    for (const key of isFull ? this.#keys.splice(0) : []) context.forget(key);
    const key = isFull ? `results ${this.#pieces++}` : this.#nextKey();
    put(key, isFull ? this.#addTo({ ...this.#open }, this.#fresh) : this.#fresh);
    if (isFull) {
      this.#open = {};
      this.#size = 0;
    } else {
      this.#keys.push(key);
      // The remembered value is frozen, so it is not copied again.
      this.#addTo(this.#open, (context.recall(key) ?? {}) as Piece);
      this.#size += this.#waiting;
    }
    this.#fresh = {};
    this.#waiting = 0;
  }

  #addTo(target: Record<string, unknown>, piece: Piece): Record<string, unknown> {
    for (const [id, value] of Object.entries(piece)) setKey(target, id, value);
    return target;
  }
}
