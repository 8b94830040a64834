import type { NodeContext } from "../graph/node.js";
import { isStop, messageOf } from "../run/failure.js";
import { PauseSignal } from "../run/pauses.js";
import { within } from "../run/timeout.js";
import type { PauseRequest } from "../state/record.js";
import { Branch, Fan } from "./branch.js";
import { type ItemError, ParallelError } from "./errors.js";
import { Finished } from "./finished.js";
import { ItemScope } from "./scope.js";

/** How a pool works on its items. */
export interface PoolOptions<D extends object, I, R> {
  readonly worker: (item: I, scope: ItemScope<D>) => R | Promise<R>;
  readonly concurrency: number;
  readonly failFast: boolean;
  readonly timeout: number | undefined;
  readonly onProgress: ((completed: number, total: number, result: R) => void) | undefined;
}

/** One attempt at a list of items, so many at a time. */
export class Pool<D extends object, I, R> {
  /** The items that failed. */
  readonly errors: ItemError[] = [];
  readonly #context: NodeContext<D>;
  readonly #items: readonly I[];
  readonly #options: PoolOptions<D, I, R>;
  readonly #finished: Finished<D>;
  readonly #pauses = new Map<string, PauseRequest>();
  readonly #controller = new AbortController();
  readonly #signals = new Fan(this.#controller.signal);
  readonly #drains: Fan;
  #unsaved: { readonly error: unknown } | undefined;
  #completed: number;
  #next = 0;

  constructor(context: NodeContext<D>, items: readonly I[], options: PoolOptions<D, I, R>) {
    this.#context = context;
    this.#items = items;
    this.#options = options;
    this.#drains = new Fan(context.draining);
    this.#finished = new Finished(context, (error) => {
      this.#unsaved = { error };
      this.#controller.abort(error);
    });
    this.#completed = this.#finished.before;
  }

  /** The results of the items that succeeded, in their order. */
  async run(): Promise<R[]> {
    const { signal } = this.#context;
    const abort = (): void => this.#controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    const { concurrency } = this.#options;
    this.#context.emit("parallel.start", { ...this.#told(), concurrency });
    try {
      await Promise.all(Array.from({ length: concurrency }, () => this.#lane()));
      const results = await this.#finished.results(this.#items.length);
      this.#judge(results);
      this.#context.emit("parallel.complete", { ...this.#told(), failed: this.errors.length });
      return results as R[];
    } catch (error) {
      if (!(error instanceof PauseSignal)) {
        const failed = this.errors.length;
        const told = { ...this.#told(), failed, error: messageOf(error) };
        this.#context.emit("parallel.complete", told);
      }
      throw error;
    } finally {
      signal.removeEventListener("abort", abort);
      this.#drains.end();
    }
  }

  #told() {
    const { node, step } = this.#context;
    return { node, step, total: this.#items.length, completed: this.#completed };
  }

  async #lane(): Promise<void> {
    const { signal } = this.#controller;
    const { draining } = this.#context;
    while (this.#next < this.#items.length && !signal.aborted && !draining.aborted) {
      const index = this.#next++;
      if (!this.#finished.has(index)) await this.#work(index, this.#items[index] as I);
    }
  }

  async #work(index: number, item: I): Promise<void> {
    const { worker, timeout, failFast, onProgress } = this.#options;
    const context = this.#context;
    const { signal } = this.#controller;
    const total = this.#items.length;
    const told = { node: context.node, step: context.step, index, total };
    context.emit("worker.start", told);
    const branch = new Branch(this.#signals, this.#drains);
    let scope = new ItemScope(context, index, branch);
    let result: R;
    try {
      result =
        timeout === undefined
          ? await worker(item, scope)
          : await within(timeout, `item ${index}`, branch.signal, (limited) => {
              scope = new ItemScope(context, index, { signal: limited, draining: branch.draining });
              return worker(item, scope);
            });
    } catch (cause) {
      if (cause instanceof PauseSignal) {
        for (const request of cause.requests) this.#pauses.set(request.name, request);
        return;
      }
      context.emit("worker.complete", { ...told, error: messageOf(cause) });
      if (isStop(cause, { signal, draining: context.draining })) return;
      this.errors.push({ index, item, cause });
      if (failFast) this.#controller.abort(cause);
      return;
    } finally {
      branch.end();
    }
    context.emit("worker.complete", told);
    this.#completed++;
    onProgress?.(this.#completed, total, result);
    const full = this.#finished.add(index, result, scope.keys);
    if (full !== undefined) await full;
  }

  /** Throws what the node must end with, if it has no result. */
  #judge(results: readonly unknown[]): void {
    if (this.#unsaved !== undefined) throw this.#unsaved.error;
    const total = this.#items.length;
    const failed = this.errors.sort((one, other) => one.index - other.index).length;
    if (failed > 0 && (this.#options.failFast || failed === total)) {
      throw new ParallelError(this.errors, results, total);
    }
    if (this.#completed + failed === total) return;
    this.#context.signal.throwIfAborted();
    this.#context.draining.throwIfAborted();
    throw new PauseSignal([...this.#pauses.values()]);
  }
}
