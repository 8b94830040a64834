import { abortWith } from "../concurrency.js";
import { type ItemError, messageOf, ParallelError, show } from "../errors.js";
import type { RetryPolicy, Saves } from "../graph/node.js";
import { isStop, type Stop } from "../run/loop/failure.js";
import { PauseRequested } from "../run/pauses/pauses.js";
import { attempts, type FailedAttempt } from "../run/visit/attempts.js";
import type { RunContext } from "../run/visit/context.js";
import type { PauseRequest } from "../state/pauses.js";
import { Finished } from "./finished.js";
import { labelOf, workOn } from "./items.js";

/** How one item is worked on. */
interface ItemOptions {
  readonly timeout?: number | undefined;
  /** The policy of the node, or of the item around it, by default. */
  readonly retry?: RetryPolicy | undefined;
  readonly phase?: string | undefined;
}

/** How a pool works on its items. */
export interface PoolOptions<D extends object, I, R> {
  readonly worker: (item: I, context: RunContext<D>) => R | Promise<R>;
  readonly concurrency?: number | undefined;
  readonly failFast?: boolean | undefined;
  /** As in the list around it by default. */
  readonly saves?: Saves | undefined;
  readonly onProgress?: ((completed: number, total: number, result: R) => void) | undefined;
  /** The names of the items, which identify them whatever their place in the list; their indexes by default. */
  readonly names?: readonly string[];
  /** How an item is worked on. */
  readonly options: (item: I) => ItemOptions;
  /** The indexes of the items whose results an item waits for; none by default. */
  readonly needs?: (item: I) => readonly number[];
}

/** The upper limit of the default concurrency. */
const CAP = 16;

/** How many items run at once by default: twice the number of processors, if it is known. */
function usualConcurrency(): number {
  const host = globalThis as { navigator?: { hardwareConcurrency?: number } };
  return Math.min(2 * (host.navigator?.hardwareConcurrency ?? 4), CAP);
}

/** One attempt at a list of items, with limited concurrency. */
export class Pool<D extends object, I, R> {
  /** The items that failed. */
  readonly errors: ItemError[] = [];
  /** The results that were saved before, by id, including those of items that are no longer in the list. */
  readonly before: ReadonlyMap<string, unknown>;
  readonly #context: RunContext<D>;
  readonly #items: readonly I[];
  readonly #ids: readonly string[];
  readonly #options: PoolOptions<D, I, R>;
  readonly #concurrency: number;
  readonly #failFast: boolean;
  readonly #finished: Finished<D>;
  readonly #queue: Queue;
  readonly #pauses = new Map<string, PauseRequest>();
  /** Aborts with the node, and when its items stop. */
  readonly #abort = new AbortController();
  readonly #stop: Stop;
  #completed: number;

  constructor(context: RunContext<D>, items: readonly I[], options: PoolOptions<D, I, R>) {
    const { concurrency = usualConcurrency(), failFast = true } = options;
    this.#context = context;
    this.#items = items;
    this.#ids = options.names ?? items.map((_item, index) => String(index));
    this.#options = options;
    this.#concurrency = Math.min(concurrency, items.length);
    this.#failFast = failFast;
    this.#stop = { signal: this.#abort.signal, draining: context.draining };
    this.#finished = new Finished(context, options.saves ?? context.saves, this.#abort);
    this.before = this.#finished.known();
    const isDone = this.#ids.map((id) => this.before.has(id));
    this.#completed = isDone.filter(Boolean).length;
    this.#queue = new Queue(isDone, (index) => options.needs?.(items[index] as I) ?? []);
  }

  /** The results of the items that succeeded, in the order of the list. */
  async run(): Promise<R[]> {
    this.#context.emit("parallel.start", { ...this.#progress(), concurrency: this.#concurrency });
    const unlink = abortWith(this.#abort, this.#context.signal);
    try {
      await this.#workOnAll();
      const known = await this.#finished.results();
      const results = this.#ids.filter((id) => known.has(id)).map((id) => known.get(id) as R);
      this.#throwUnlessDone(results);
      this.#emitComplete();
      return results;
    } catch (error) {
      this.#leave();
      if (!(error instanceof PauseRequested)) this.#emitComplete({ error: messageOf(error) });
      throw error;
    } finally {
      unlink();
    }
  }

  #emitComplete(failure?: { readonly error: string }): void {
    const data = { ...this.#progress(), failed: this.errors.length, ...failure };
    this.#context.emit("parallel.complete", data);
  }

  /** Leaves finished results for the next attempt; an abandoned attempt can't. */
  #leave(): void {
    try {
      this.#finished.leave();
    } catch {
      // The caller must see the node's own error.
    }
  }

  #progress() {
    const { node, step } = this.#context;
    return { node, step, total: this.#items.length, completed: this.#completed };
  }

  /** Works on the items that are ready; resolves when none is running and none may start. */
  #workOnAll(): Promise<void> {
    const { signal, draining } = this.#stop;
    let running = 0;
    return new Promise((resolve, reject) => {
      const fill = (): void => {
        while (running < this.#concurrency && !signal.aborted && !draining.aborted) {
          const index = this.#queue.take();
          if (index === undefined) break;
          running++;
          this.#work(index, this.#ids[index] as string).then((isDone) => {
            running--;
            if (isDone) this.#queue.done(index);
            fill();
          }, reject);
        }
        if (running === 0) resolve();
      };
      fill();
    });
  }

  /** Works on one item, and returns whether it succeeded. */
  async #work(index: number, id: string): Promise<boolean> {
    const { names, onProgress, options, saves, worker } = this.#options;
    const { node, step, retry: usual } = this.#context;
    const total = this.#items.length;
    const item = this.#items[index] as I;
    const label = names === undefined ? labelOf(item, index) : id;
    const name = names === undefined ? `item ${index}` : `task ${show(id)}`;
    const { timeout, retry = usual, phase } = options(item);
    const data = { node, step, index, item: label, total, ...(phase !== undefined && { phase }) };
    const stop = new ItemStop(this.#stop);
    const context = this.#context.item({ index, id, label, saves, stop });
    const tries = {
      name,
      retry,
      timeout,
      action: worker,
      retried: (own: RunContext<D>, failure: FailedAttempt) =>
        own.emit("worker.retry", { ...data, ...failure }),
    };
    let result: R;
    try {
      result = await workOn(context, "worker", data, () => attempts(context, item, tries));
    } catch (cause) {
      if (cause instanceof PauseRequested) {
        for (const request of cause.requests) this.#pauses.set(request.name, request);
      } else if (!isStop(cause, context)) {
        this.errors.push({ index, item, cause });
        if (this.#failFast) this.#abort.abort(cause);
      }
      return false;
    } finally {
      stop.end();
    }
    this.#completed++;
    onProgress?.(this.#completed, total, result);
    const full = this.#finished.add(id, result, context);
    if (full !== undefined) await full;
    return true;
  }

  /** Throws the error, abort or pause that the node ends with, if it has no result. */
  #throwUnlessDone(results: readonly R[]): void {
    const total = this.#items.length;
    const failed = this.errors.sort((one, other) => one.index - other.index).length;
    if (failed > 0 && (this.#failFast || failed === total)) {
      throw new ParallelError(this.errors, results, total);
    }
    if (this.#completed + failed === total) return;
    this.#context.signal.throwIfAborted();
    this.#context.draining.throwIfAborted();
    throw new PauseRequested([...this.#pauses.values()]);
  }
}

/** The remaining items, in order; each becomes ready when those it waits for are done. */
export class Queue {
  /** The items that are ready, and how many of them were taken. */
  readonly #ready: number[] = [];
  #taken = 0;
  /** How many results each item still waits for, and which items wait for it. */
  readonly #open: number[] = [];
  readonly #waiting: number[][] = [];

  constructor(isDone: readonly boolean[], needs: (index: number) => readonly number[]) {
    for (const [index, done] of isDone.entries()) {
      if (done) continue;
      const open = needs(index).filter((need) => !isDone[need]);
      this.#open[index] = open.length;
      if (open.length === 0) this.#ready.push(index);
      for (const need of open) {
        this.#waiting[need] ??= [];
        this.#waiting[need].push(index);
      }
    }
  }

  /** The next item to work on; `undefined` if none is ready. */
  take(): number | undefined {
    return this.#taken === this.#ready.length ? undefined : this.#ready[this.#taken++];
  }

  /** All items that are ready. */
  takeAll(): number[] {
    const taken = this.#ready.slice(this.#taken);
    this.#taken = this.#ready.length;
    return taken;
  }

  done(index: number): void {
    for (const other of this.#waiting[index] ?? []) {
      this.#open[other] = (this.#open[other] ?? 0) - 1;
      if (this.#open[other] === 0) this.#ready.push(other);
    }
  }
}

/** The signals that stop one item. Each is its own, as Node warns if one has many listeners, and made on first use. */
class ItemStop implements Stop {
  readonly #outer: Stop;
  readonly #unlinks: (() => void)[] = [];
  #signal: AbortSignal | undefined;
  #draining: AbortSignal | undefined;

  constructor(outer: Stop) {
    this.#outer = outer;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#link(this.#outer.signal);
    return this.#signal;
  }

  get draining(): AbortSignal {
    this.#draining ??= this.#link(this.#outer.draining);
    return this.#draining;
  }

  #link(source: AbortSignal): AbortSignal {
    const controller = new AbortController();
    this.#unlinks.push(abortWith(controller, source));
    return controller.signal;
  }

  /** Releases the signals of a finished item. */
  end(): void {
    for (const unlink of this.#unlinks) unlink();
  }
}
