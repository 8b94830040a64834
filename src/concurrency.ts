/** A promise that somebody else settles. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** A promise, and what settles it. */
export function defer<T = void>(): Deferred<T> {
  let [resolve, reject]: [(value: T) => void, (error: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve, reject };
}

/** Who listens to a signal, and what stops the one listener that they share. */
interface Listeners {
  readonly callbacks: Set<() => void>;
  stop(): void;
}

const listening = new WeakMap<AbortSignal, Listeners>();

/**
 * Calls back when a signal aborts; returns the way to call it off. A caller may give one signal to
 * thousands of runs, and a listener of each would be reported as a leak.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
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

/** What a promise gives, unless a signal aborts first. */
export async function unlessAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason);
  });
  const ignore = onAbort(signal, stop);
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    ignore();
  }
}

/** Runs one action at a time, in the order in which they were asked for. */
export class Mutex {
  #last: Promise<void> | undefined;

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#last === undefined;
  }

  /** Runs an action once all that came before it is over: at once, when that is nothing. */
  run<T>(action: () => Promise<T>): Promise<T> {
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

/** Runs at most so many actions at a time, in the order in which they were asked for. */
export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(limit: number) {
    this.#free = limit;
  }

  /** Runs an action as soon as there is room for it: at once, if there is. */
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

/** Tasks that nobody waits for. */
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
 * One read for all who ask at about the same time. Each caller gets what was read after it asked, so
 * nobody sees what was before; those who ask while a read is under way share the next.
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

/** What `action` makes of each item, in order, at most `limit` at a time. */
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

/** How a {@link Batcher} does its work. */
export interface BatcherOptions<Item, Result> {
  /** Does several items together; gives their results in the same order. */
  many(items: readonly Item[]): Promise<readonly Result[]>;
  /** Does one item, where that is faster than a batch of one. */
  one?(item: Item): Promise<Result>;
  /** Whether an error means that one of the items is to blame, and that nothing was done; never by default. */
  isItemFault?(error: unknown): boolean;
  /** The size of an item, in whatever `maxSize` counts; 0 by default. */
  sizeOf?(item: Item): number;
  /** How many batches may be under way; 2 by default. */
  readonly maxRunning?: number;
  /** The most items of a batch; 100 by default. */
  readonly maxItems?: number;
  /** The most that the items of a batch come to, unless there is only one; 1 MB by default. */
  readonly maxSize?: number;
}

interface BatchItem<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Does an item at once while few are under way; those that have to wait are done together. */
export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #maxRunning: number;
  #waiting: BatchItem<Item, Result>[] = [];
  #running = 0;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#maxRunning = options.maxRunning ?? 2;
  }

  /** What comes of an item. */
  run(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#running < this.#maxRunning) this.#drain();
    });
  }

  async #drain(): Promise<void> {
    this.#running++;
    while (this.#waiting.length > 0) await this.#batch(this.#take());
    this.#running--;
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
    const [first] = batch;
    if (batch.length === 1 && first !== undefined) return this.#single(first);
    try {
      const results = await many(batch.map(({ item }) => item));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      // Only the one that is to blame must fail.
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
