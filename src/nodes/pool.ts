import { msSince, now, sleep } from "../clock.js";
import { onAbort } from "../concurrency.js";
import { type ItemError, messageOf, ParallelError, show } from "../errors.js";
import type { EventMap } from "../event-map.js";
import { type RetryPolicy, retryDelay } from "../run/attempts.js";
import type { FactoryContext } from "../run/factory-context.js";
import { isStop } from "../run/failure.js";
import { PauseRequested } from "../run/pauses.js";
import { within } from "../run/timeout.js";
import type { PauseRequest } from "../state/record.js";
import { Finished } from "./finished.js";
import { ItemSignals, SignalFan } from "./item-signals.js";
import type { Saves } from "./saves.js";
import { ItemScope, labelOf } from "./scope.js";

/** How one item is worked on. */
interface ItemOptions {
  readonly timeout?: number | undefined;
  readonly retry?: RetryPolicy | undefined;
  readonly phase?: string | undefined;
}

/** How a pool works on its items. */
export interface PoolOptions<D extends object, I, R> {
  readonly worker: (item: I, scope: ItemScope<D>) => R | Promise<R>;
  readonly concurrency: number;
  readonly failFast: boolean;
  readonly saves: Saves;
  readonly onProgress?: ((completed: number, total: number, result: R) => void) | undefined;
  /** Identifies an item, whatever its place in the list; its index by default. */
  readonly id?: (item: I) => string;
  /** How an item is worked on. */
  readonly options: (item: I) => ItemOptions;
  /** The indexes of the items whose results an item waits for; none by default. */
  readonly needs?: (item: I) => readonly number[];
}

/** The upper limit of the default concurrency. */
const CAP = 16;

/** How many items run at once by default: twice the number of processors, if it is known. */
export function usualConcurrency(): number {
  const host = globalThis as { navigator?: { hardwareConcurrency?: number } };
  return Math.min(2 * (host.navigator?.hardwareConcurrency ?? 4), CAP);
}

/** One attempt at a list of items, with limited concurrency. */
export class Pool<D extends object, I, R> {
  /** The items that failed. */
  readonly errors: ItemError[] = [];
  readonly #context: FactoryContext<D>;
  readonly #items: readonly I[];
  readonly #options: PoolOptions<D, I, R>;
  readonly #finished: Finished<D>;
  readonly #queue: Queue;
  readonly #pauses = new Map<string, PauseRequest>();
  readonly #controller = new AbortController();
  readonly #signals = new SignalFan(this.#controller.signal);
  readonly #drains: SignalFan;
  #unsaved: { readonly error: unknown } | undefined;
  #completed = 0;

  constructor(context: FactoryContext<D>, items: readonly I[], options: PoolOptions<D, I, R>) {
    this.#context = context;
    this.#items = items;
    this.#options = options;
    this.#drains = new SignalFan(context.draining);
    this.#finished = new Finished(context, options.saves, (error) => {
      this.#unsaved = { error };
      this.#controller.abort(error);
    });
    const isDone = items.map((item, index) => this.#finished.has(this.#id(item, index)));
    this.#completed = isDone.filter(Boolean).length;
    this.#queue = new Queue(isDone, (index) => options.needs?.(items[index] as I) ?? []);
  }

  /** The results that were saved before, by id, including those of items that are no longer in the list. */
  get before(): Map<string, unknown> {
    return this.#finished.known();
  }

  /** The results of all items that succeeded, by id, including those of items that are no longer in the list. */
  async run(): Promise<Map<string, unknown>> {
    const { signal } = this.#context;
    const abort = (): void => this.#controller.abort(signal.reason);
    if (signal.aborted) abort();
    const wake = (): void => this.#queue.wake();
    const listeners = [
      onAbort(signal, abort),
      onAbort(this.#controller.signal, wake),
      onAbort(this.#context.draining, wake),
    ];
    const concurrency = Math.min(this.#options.concurrency, this.#items.length);
    this.#context.emit("parallel.start", { ...this.#progress(), concurrency });
    try {
      await Promise.all(Array.from({ length: concurrency }, () => this.#lane()));
      const results = await this.#finished.results();
      this.#throwUnlessDone(results);
      this.#emitComplete();
      return results;
    } catch (error) {
      this.#leave();
      if (!(error instanceof PauseRequested)) this.#emitComplete({ error: messageOf(error) });
      throw error;
    } finally {
      for (const ignore of listeners) ignore();
      this.#drains.end();
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

  #id(item: I, index: number): string {
    return this.#options.id?.(item) ?? String(index);
  }

  #progress() {
    const { node, step } = this.#context;
    return { node, step, total: this.#items.length, completed: this.#completed };
  }

  async #lane(): Promise<void> {
    const { signal } = this.#controller;
    const { draining } = this.#context;
    while (!signal.aborted && !draining.aborted) {
      const index = this.#queue.take();
      if (index !== undefined) {
        const isDone = await this.#work(index, this.#items[index] as I);
        this.#queue.end(index, isDone);
      } else if (this.#queue.isOver) {
        return;
      } else {
        await this.#queue.more();
      }
    }
  }

  /** Works on one item, and returns whether it succeeded. */
  async #work(index: number, item: I): Promise<boolean> {
    const { failFast, onProgress, options } = this.#options;
    const context = this.#context;
    const { signal } = this.#controller;
    const total = this.#items.length;
    const id = this.#id(item, index);
    const { timeout, retry, phase } = options(item);
    const label = this.#options.id === undefined ? labelOf(item, index) : id;
    const data: EventMap["worker.start"] = {
      ...{ node: context.node, step: context.step, index, item: label, total },
      ...(phase !== undefined && { phase }),
    };
    context.emit("worker.start", data);
    const started = now();
    const stop = new ItemSignals(this.#signals, this.#drains);
    const spent: ItemScope<D>[] = [];
    let result: R;
    try {
      result = await this.#attempts(item, { index, id, data, stop, timeout, retry, spent });
    } catch (cause) {
      if (cause instanceof PauseRequested) {
        for (const request of cause.requests) this.#pauses.set(request.name, request);
        return false;
      }
      const durationMs = msSince(started);
      const isStopped = isStop(cause, { signal, draining: context.draining });
      const ended = { ...data, durationMs, error: messageOf(cause) };
      context.completeItem("worker.complete", ended, isStopped ? "stopped" : "failed");
      if (isStopped) return false;
      this.errors.push({ index, item, cause });
      if (failFast) this.#controller.abort(cause);
      return false;
    } finally {
      stop.end();
    }
    context.completeItem("worker.complete", { ...data, durationMs: msSince(started) }, "completed");
    this.#completed++;
    onProgress?.(this.#completed, total, result);
    const full = this.#finished.add(id, result, spent);
    if (full !== undefined) await full;
    return true;
  }

  /** Tries an item as often as its retry policy allows. */
  async #attempts(item: I, work: ItemWork<D>): Promise<R> {
    const { index, id, data, stop, timeout, retry, spent } = work;
    const { worker, saves } = this.#options;
    const name = this.#options.id === undefined ? `item ${index}` : `task ${show(id)}`;
    for (let attempt = 1; ; attempt++) {
      const open = (signals: { signal: AbortSignal; draining: AbortSignal }): ItemScope<D> =>
        new ItemScope(this.#context, {
          ...{ index, id, stop: signals, saves, label: data.item },
          ...(retry !== undefined && { attempt }),
        });
      let scope = open(stop);
      try {
        await this.#context.checkClaim();
        return timeout === undefined
          ? await worker(item, scope)
          : await within(timeout, name, stop.signal, (signal) => {
              scope = open({ signal, draining: stop.draining });
              return worker(item, scope);
            });
      } catch (cause) {
        const isOver = cause instanceof PauseRequested || isStop(cause, stop);
        const delayMs = isOver ? undefined : retryDelay(cause, attempt, retry);
        if (delayMs === undefined || stop.signal.aborted) throw cause;
        scope.end();
        const error = messageOf(cause);
        this.#context.emit("worker.retry", { ...data, attempt, error, cause, delayMs });
        await sleep(delayMs, stop.signal, stop.draining);
      } finally {
        if (scope.hasKeys) spent.push(scope);
      }
    }
  }

  /** Throws the error, abort or pause that the node ends with, if it has no result. */
  #throwUnlessDone(results: ReadonlyMap<string, unknown>): void {
    if (this.#unsaved !== undefined) throw this.#unsaved.error;
    const total = this.#items.length;
    const failed = this.errors.sort((one, other) => one.index - other.index).length;
    if (failed > 0 && (this.#options.failFast || failed === total)) {
      throw new ParallelError(this.errors, this.inOrder(results), total);
    }
    if (this.#completed + failed === total) return;
    this.#context.signal.throwIfAborted();
    this.#context.draining.throwIfAborted();
    throw new PauseRequested([...this.#pauses.values()]);
  }

  /** The results of the items that succeeded, in the order of the list. */
  inOrder(results: ReadonlyMap<string, unknown>): R[] {
    const list: unknown[] = [];
    for (const [index, item] of this.#items.entries()) {
      const id = this.#id(item, index);
      if (results.has(id)) list.push(results.get(id));
    }
    return list as R[];
  }
}

interface ItemWork<D extends object> {
  readonly index: number;
  readonly id: string;
  readonly data: EventMap["worker.start"];
  readonly stop: ItemSignals;
  readonly timeout: number | undefined;
  readonly retry: RetryPolicy | undefined;
  /** The scopes that remembered something. */
  readonly spent: ItemScope<D>[];
}

/** The remaining items, in order; each becomes ready when those it waits for are done. */
class Queue {
  /** The items that are ready, and how many of them were taken. */
  readonly #ready: number[] = [];
  #taken = 0;
  /** How many results each item still waits for, and which items wait for it. */
  readonly #open: number[] = [];
  readonly #waiting: number[][] = [];
  #running = 0;
  #wake: () => void = () => {};
  #more: Promise<void> | undefined;

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
    if (this.#taken === this.#ready.length) return undefined;
    this.#running++;
    return this.#ready[this.#taken++];
  }

  /** Whether no running item can make another one ready. */
  get isOver(): boolean {
    return this.#running === 0;
  }

  end(index: number, isDone: boolean): void {
    this.#running--;
    for (const other of (isDone && this.#waiting[index]) || []) {
      this.#open[other] = (this.#open[other] ?? 0) - 1;
      if (this.#open[other] === 0) this.#ready.push(other);
    }
    this.wake();
  }

  /** Waits until something changes. */
  more(): Promise<void> {
    this.#more ??= new Promise((resolve) => {
      this.#wake = resolve;
    });
    return this.#more;
  }

  wake(): void {
    this.#more = undefined;
    this.#wake();
  }
}
