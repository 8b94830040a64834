/** A promise that is settled from outside. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Creates a promise with the functions that settle it. */
export function defer<T = void>(): Deferred<T> {
  let [resolve, reject]: [(value: T) => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

/** The callbacks for a signal, and what removes the one listener that they share. */
interface Listeners {
  readonly callbacks: Set<() => void>;
  stop(): void;
}

const listening = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back when a signal aborts; returns a function that cancels it. A caller may pass one signal to
 * thousands of runs, and a listener for each would be reported as a leak.
 */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const listeners = listening.get(signal) ?? listenTo(signal);
  const { callbacks } = listeners;
  const own = (): void => callback();
  callbacks.add(own);
  return () => {
    if (callbacks.delete(own) && callbacks.size === 0) listeners.stop();
  };
}

function listenTo(signal: AbortSignal): Listeners {
  const callbacks = new Set<() => void>();
  const stop = (): void => {
    signal.removeEventListener("abort", abort);
    listening.delete(signal);
  };
  const abort = (): void => {
    stop();
    for (const callback of callbacks) callback();
  };
  signal.addEventListener("abort", abort);
  const listeners = { callbacks, stop };
  listening.set(signal, listeners);
  return listeners;
}

/** Waits for a promise; rejects with a signal's reason if that aborts first. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  const aborted = defer<never>();
  const ignore = onAbort(signal, () => aborted.reject(signal.reason));
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    ignore();
  }
}

/** Aborts a controller as soon as one of these signals aborts; returns a function that ends that. */
export function abortWith(
  controller: Pick<AbortController, "abort">,
  ...signals: readonly (AbortSignal | undefined)[]
): () => void {
  const ends = signals.map((signal) => {
    const abort = (): void => controller.abort(signal?.reason);
    if (signal?.aborted) abort();
    return signal && onAbort(signal, abort);
  });
  return () => {
    for (const end of ends) end?.();
  };
}

/** Works until it is done, or rejects with a signal's reason as soon as one aborts. */
export async function during<T>(
  work: (signal: AbortSignal) => Promise<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  const ignore = abortWith(controller, ...signals);
  try {
    signal.throwIfAborted();
    return await unlessAborted(work(signal), signal);
  } finally {
    ignore();
  }
}

/** Runs one action at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<void> | undefined;

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#last === undefined;
  }

  /** Runs an action after all earlier ones have ended; immediately if there are none. */
  run<T>(action: () => Promise<T>): Promise<T> {
    const before = this.#last;
    const { promise: last, resolve: end } = defer();
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

/** Runs a limited number of actions at a time, in the order of the calls. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs an action as soon as the limit allows it. */
  async run<T>(action: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await action();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** Background tasks that nobody awaits. */
export class TaskSet {
  readonly #tasks = new Set<Promise<void>>();

  /** Starts a task; its error goes to `onError` and is never thrown. */
  start(task: () => Promise<unknown>, onError: (error: unknown) => void): void {
    const running: Promise<void> = task()
      .then(() => {}, onError)
      .finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Resolves when no task is under way. */
  async settled(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}

/**
 * Shares one read among callers. Each gets the result of a read that began after its call, so none sees stale
 * data; calls during a read share the next one.
 */
export class CoalescedRead<T> {
  readonly #read: () => Promise<T>;
  #running: Promise<unknown> = Promise.resolve();
  #next: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.#read = read;
  }

  /** The result of a read that begins after this call. */
  get(): Promise<T> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      const reading = this.#read();
      this.#running = reading.catch(() => {});
      return reading;
    });
    return this.#next;
  }
}

/** The results of `action` for each item, in order, at most `limit` at a time. */
export async function mapLimit<T, U>(
  items: readonly T[],
  limit: number,
  action: (item: T) => Promise<U>,
): Promise<U[]> {
  const results: U[] = [];
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await action(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}

/** Options of a {@link Batcher}. */
export interface BatcherOptions<Item, Result> {
  /** Processes several items together; returns their results in the same order. */
  many(items: readonly Item[]): Promise<readonly Result[]>;
  /** Awaited before the items of a batch are taken, for others that are about to come. */
  before?(): Promise<void> | undefined;
  /** Processes one item, if that is faster than a batch of one. */
  one?(item: Item): Promise<Result>;
  /** Whether an error was caused by a single item and nothing took effect; never by default. */
  isItemFault?(error: unknown): boolean;
  /** The size of an item, in the unit of `maxSize`; 0 by default. */
  sizeOf?(item: Item): number;
  /** How many batches may run at once; 2 by default. */
  readonly maxRunning?: number;
  /** The maximum number of items in a batch; 100 by default. */
  readonly maxItems?: number;
  /** The maximum total size of a batch of more than one item; 1 MB by default. */
  readonly maxSize?: number;
}

interface BatchItem<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Processes an item immediately while few batches are running; items that have to wait are processed together. */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #maxRunning: number;
  #waiting: BatchItem<Item, Result>[] = [];
  #running = 0;
  readonly #onIdle: (() => void)[] = [];

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#maxRunning = options.maxRunning ?? 2;
  }

  /** Processes an item; resolves to its result. */
  run(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#running < this.#maxRunning) this.#drain();
    });
  }

  /** Resolves when nothing waits or is under way. */
  async settled(): Promise<void> {
    while (this.#running > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #drain(): Promise<void> {
    this.#running++;
    const { before } = this.#options;
    while (this.#waiting.length > 0) {
      if (before !== undefined) await before();
      const batch = this.#take();
      const [first, second] = batch;
      if (first !== undefined) await (second ? this.#batch(batch) : this.#single(first));
    }
    this.#running--;
    if (this.#running === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #take(): BatchItem<Item, Result>[] {
    const { sizeOf = () => 0, maxItems = 100, maxSize = 1024 * 1024 } = this.#options;
    let sum = 0;
    const length = this.#waiting.findIndex(({ item }, index) => {
      sum += sizeOf(item);
      return index > 0 && (index === maxItems || sum > maxSize);
    });
    return this.#waiting.splice(0, length < 0 ? this.#waiting.length : length);
  }

  async #batch(batch: readonly BatchItem<Item, Result>[]): Promise<void> {
    const { many, isItemFault } = this.#options;
    try {
      const results = await many(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      // Only the item that caused it must fail.
      if (isItemFault?.(error)) await Promise.all(batch.map((one) => this.#single(one)));
      else for (const { reject } of batch) reject(error);
    }
  }

  async #single({ item, resolve, reject }: BatchItem<Item, Result>): Promise<void> {
    const { one, many } = this.#options;
    try {
      if (one !== undefined) return resolve(await one(item));
      const [result] = await many([item]);
      resolve(result as Result);
    } catch (error) {
      reject(error);
    }
  }
}
