import type { Connection } from "./connection.js";
import type { Database } from "./database.js";
import { isBusy } from "./failure.js";

/** The limits of one transaction, so that the event loop is not blocked for long. */
const MAX_COUNT = 200;
const MAX_BYTES = 1024 * 1024;

/** After this many milliseconds of transactions, the event loop gets a turn. */
const MAX_BLOCKED = 10;

/** How work is done. */
export interface WorkOptions {
  /** Whether it must survive a power cut once it is done. */
  readonly flushes: boolean;
  /** About how many rows it writes or removes; 1 by default. */
  readonly count?: number;
  /** How many bytes it writes; 0 by default. */
  readonly bytes?: number;
}

/** Work that waits for a transaction. */
interface Job {
  readonly work: (connection: Connection) => unknown;
  readonly options: WorkOptions;
  readonly resolve: (result: never) => void;
  readonly reject: (error: unknown) => void;
  /** Whether it must run in a transaction of its own, because it failed together with others. */
  isAlone: boolean;
}

/**
 * Writes to a database. Work that arrives at about the same time shares one transaction, and with it one disk
 * flush; if one piece of work fails, it fails alone.
 */
export class Transactions {
  readonly #database: Database;
  readonly #flushes: boolean;
  #queue: Job[] = [];
  #running: Promise<void> | undefined;
  #lastCount = 0;
  #turnAt = performance.now();
  #busySince: number | undefined;

  /** @param flushes - whether to flush the disk at all. */
  constructor(database: Database, flushes: boolean) {
    this.#database = database;
    this.#flushes = flushes;
  }

  /**
   * Does work in a transaction.
   *
   * @param work - may be called again if its transaction is rolled back, so it must have no other side
   *   effects.
   */
  run<T>(work: (connection: Connection) => T, options: WorkOptions): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#database.checkWritable();
      this.#queue.push({ work, options, resolve, reject, isAlone: false });
      this.#running ??= this.#drain();
    });
  }

  /** Resolves when nothing waits. */
  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #drain(): Promise<void> {
    // Work submitted in the same turn shares a transaction.
    await undefined;
    while (this.#queue.length > 0) {
      // If the last transaction was shared, let the runs that it released submit their next work first.
      if (this.#lastCount > 1 || performance.now() - this.#turnAt > MAX_BLOCKED) await this.#turn();
      const batch = this.#take();
      try {
        const connection = this.#database.ready ?? (await this.#database.writing());
        this.#commit(connection, batch);
        this.#busySince = undefined;
      } catch (error) {
        await this.#failed(batch, error);
      }
    }
    this.#running = undefined;
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#turnAt = performance.now();
        resolve();
      });
    });
  }

  #take(): Job[] {
    let count = 0;
    let bytes = 0;
    const end = this.#queue.findIndex(({ options, isAlone }, index) => {
      count += options.count ?? 1;
      bytes += options.bytes ?? 0;
      return index > 0 && (isAlone || count > MAX_COUNT || bytes > MAX_BYTES);
    });
    const length = this.#queue[0]?.isAlone ? 1 : end < 0 ? this.#queue.length : end;
    this.#lastCount = length;
    return this.#queue.splice(0, length);
  }

  /** @throws the driver's error if the transaction did not take place; the jobs are then retried or rejected. */
  #commit(connection: Connection, batch: readonly Job[]): void {
    connection.begin(this.#flushes && batch.some(({ options }) => options.flushes));
    const results: unknown[] = [];
    try {
      for (const { work } of batch) results.push(work(connection));
    } catch (error) {
      connection.rollback();
      this.#split(batch, error);
      return;
    }
    try {
      connection.commit();
    } catch (error) {
      connection.rollback();
      if (isBusy(error)) throw error;
      // The commit record may be on the disk: if this process dies now, it may count.
      for (const { reject } of batch) reject(this.#database.failure(error, { unsure: true }));
      return;
    }
    for (const [index, { resolve }] of batch.entries()) resolve(results[index] as never);
  }

  /** Queues the jobs of a failed transaction again, one per transaction, so that only the culprit fails. */
  #split(batch: readonly Job[], error: unknown): void {
    const [first] = batch;
    if (batch.length === 1) {
      first?.reject(this.#database.failure(error));
      return;
    }
    for (const job of batch) job.isAlone = true;
    this.#queue.unshift(...batch);
  }

  /** Handles a transaction that did not take place. */
  async #failed(batch: readonly Job[], error: unknown): Promise<void> {
    this.#busySince ??= performance.now();
    try {
      await this.#database.wait(error, this.#busySince);
      this.#queue.unshift(...batch);
    } catch (failure) {
      this.#busySince = undefined;
      for (const { reject } of batch) reject(failure);
    }
  }
}
