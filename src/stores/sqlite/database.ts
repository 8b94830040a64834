import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setImmediate } from "node:timers/promises";
import { steadySleep } from "../../clock.js";
import { Batcher, Mutex } from "../../concurrency.js";
import { ConfigError, messageOf, systemCode } from "../../errors.js";
import { ignoring, makeFolders } from "../disk/file-system.js";
import { NodeFileSystem } from "../disk/node-file-system.js";
import {
  APPLICATION_ID,
  Connection,
  hasTables,
  type Load,
  makeTables,
  type OwnedClient,
  openFile,
  type SqliteClient,
} from "./connection.js";
import { damaged, failure, isBusy, isDamage } from "./failure.js";

/** Where the database is, and how it is used. */
export interface DatabaseSettings {
  /** An open database, or the absolute path of a file. */
  readonly client: SqliteClient | string;
  readonly readOnly: boolean;
  /** Whether a write waits until the disk has it, if it must survive a power cut. */
  readonly flushes: boolean;
  /** For how many milliseconds to retry while another process holds a lock. */
  readonly busyFor: number;
  readonly load: Load | undefined;
}

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
}

/** An open database. A new one has no tables until the first write. */
interface Opened {
  readonly connection: Connection;
  readonly owned: OwnedClient | undefined;
  hasTables: boolean;
}

/** The limit of one transaction, so that the event loop is not blocked for long: 1 MB, or 200 rows. */
const MAX_SIZE = 1024 * 1024;
const ROW_SIZE = MAX_SIZE / 200;

/** After this many milliseconds of transactions, the event loop gets a turn. */
const MAX_BLOCKED = 10;

const MAGIC = "SQLite format 3\0";
const APPLICATION_ID_AT = 68;
const HEADER_BYTES = 100;

/** The database of a store: opened on first use, created by the first write. */
export class Database {
  /** Where it is, for messages. */
  readonly place: string;
  readonly #settings: DatabaseSettings;
  readonly #mutex = new Mutex();
  /** Work that arrives at about the same time shares one transaction, and with it one disk flush. */
  readonly #writes = new Batcher<Job, unknown>({
    maxRunning: 1,
    maxItems: Number.POSITIVE_INFINITY,
    maxSize: MAX_SIZE,
    sizeOf: ({ options: { count = 1, bytes = 0 } }) => Math.max(count * ROW_SIZE, bytes),
    before: () => this.#turn(),
    many: (jobs) => this.#transact(jobs),
  });
  #opened: Opened | undefined;
  #isDamaged = false;
  #isShared = false;
  #turnAt = performance.now();

  constructor(settings: DatabaseSettings) {
    const { client } = settings;
    this.#settings = settings;
    this.place = typeof client === "string" ? client : "the database of the given client";
  }

  /** Reads; returns `none` if there is no database. Retries while another process holds a lock. */
  read<T>(read: (connection: Connection) => T, none: T): Promise<T> {
    return this.#retried(async () => {
      const connection = this.#ready ?? (await this.#open(false));
      return connection === undefined ? none : read(connection);
    }, true);
  }

  /**
   * Does work in a transaction, and creates the database if necessary. If one piece of work fails, it fails alone.
   *
   * @param work - may be called again if its transaction is rolled back, so it must have no other side
   *   effects.
   * @throws ConfigError if the store is read-only.
   */
  write<T>(work: (connection: Connection) => T, options: WorkOptions): Promise<T> {
    return this.#writes.run({ work, options }) as Promise<T>;
  }

  /** Closes the file once nothing waits. The last process to close it removes the write-ahead log. */
  async close(): Promise<void> {
    await this.#writes.settled();
    return this.#mutex.run(async () => {
      const { connection, owned } = this.#opened ?? {};
      this.#opened = undefined;
      if (connection === undefined || owned === undefined) return;
      try {
        // Some drivers keep the log until their statements are garbage-collected.
        if (!this.#isDamaged && !this.#settings.readOnly) {
          connection.exec("PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE");
        }
      } catch {
        // Other processes have it open.
      }
      this.#isDamaged = false;
      owned.close();
    });
  }

  /** The connection, if it is open and has its tables. */
  get #ready(): Connection | undefined {
    return this.#opened?.hasTables === true ? this.#opened.connection : undefined;
  }

  /** If the last transaction was shared, lets the runs that it released submit their next work first. */
  #turn(): Promise<void> | undefined {
    if (!this.#isShared && performance.now() - this.#turnAt <= MAX_BLOCKED) return undefined;
    return setImmediate().then(() => {
      this.#turnAt = performance.now();
    });
  }

  #transact(jobs: readonly Job[]): Promise<readonly unknown[]> {
    this.#isShared = jobs.length > 1;
    return this.#retried(async () => {
      if (this.#settings.readOnly) {
        const problem = `is true: nothing can be written to ${this.place}`;
        throw new ConfigError("SqliteStore.readOnly", problem);
      }
      const connection = this.#ready ?? (await this.#open(true));
      if (connection === undefined) throw new Error("a database that was made is not there");
      connection.begin(this.#settings.flushes && jobs.some(({ options }) => options.flushes));
      const results: unknown[] = [];
      try {
        for (const { work } of jobs) results.push(work(connection));
      } catch (error) {
        connection.rollback();
        if (jobs.length === 1) throw this.#failure(error);
        return this.#separately(jobs);
      }
      try {
        connection.commit();
      } catch (error) {
        connection.rollback();
        if (isBusy(error)) throw error;
        // The commit record may be on the disk: if this process dies now, it may count.
        throw this.#failure(error, { unsure: true });
      }
      return results;
    }, false);
  }

  /** Does each piece of work in a transaction of its own, so that only the culprit fails. */
  async #separately(jobs: readonly Job[]): Promise<readonly unknown[]> {
    const results = jobs.map(async (job) => (await this.#transact([job]))[0]);
    await Promise.allSettled(results);
    return results;
  }

  /** Retries for a while what a lock of another process prevented. */
  async #retried<T>(action: () => Promise<T>, isReading: boolean): Promise<T> {
    for (const since = performance.now(); ; ) {
      try {
        return await action();
      } catch (error) {
        const waited = performance.now() - since;
        if (!isBusy(error) || waited > this.#settings.busyFor) {
          throw this.#failure(error, { isReading });
        }
        await steadySleep(1 + Math.random() * Math.min(20, 2 + waited / 10));
      }
    }
  }

  /** Converts a driver's error to the one that the store throws. */
  #failure(error: unknown, { unsure = false, isReading = false } = {}): Error {
    if (!isDamage(error, isReading)) return failure(error, unsure);
    this.#isDamaged = true;
    return damaged(this.place, messageOf(error), error);
  }

  #open(toWrite: boolean): Promise<Connection | undefined> {
    return this.#mutex.run(async () => {
      this.#opened ??= await this.#connect(toWrite);
      const opened = this.#opened;
      if (opened === undefined) return undefined;
      if (!opened.hasTables && toWrite) makeTables(opened.connection);
      opened.hasTables ||= toWrite || hasTables(opened.connection);
      return opened.hasTables ? opened.connection : undefined;
    });
  }

  async #connect(toWrite: boolean): Promise<Opened | undefined> {
    const { client, readOnly, load } = this.#settings;
    if (typeof client !== "string") return { ...this.#inspect(client), owned: undefined };
    if (((await sizeOf(client)) ?? 0) > 0) checkFile(client);
    else if (toWrite) await create(client);
    else return undefined;
    const owned = openFile(client, readOnly, load);
    try {
      return { ...this.#inspect(owned), owned };
    } catch (error) {
      owned.close();
      throw error;
    }
  }

  #inspect(client: SqliteClient): Pick<Opened, "connection" | "hasTables"> {
    const connection = new Connection(client, this.place);
    return { connection, hasTables: hasTables(connection) };
  }
}

/** The size of a file; `undefined` if it is absent. */
async function sizeOf(path: string): Promise<number | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw damaged(path, found.isDirectory() ? "a folder" : "not a file");
    return found.size;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    if (systemCode(error) === "ENOTDIR") throw damaged(path, "a path through a file", error);
    throw error;
  }
}

/** Creates an empty file that only its owner can read, with its parent folders. SQLite syncs the folder that it is in. */
async function create(path: string): Promise<void> {
  const fs = new NodeFileSystem();
  await makeFolders(fs, dirname(path));
  const file = await ignoring(fs.create(path), ["EEXIST"]);
  if (file !== undefined) await fs.close(file);
}

/**
 * Checks the first bytes of a file, so that SQLite does not even open another application's. Skips a file that
 * this process may have open: closing it here would release all of the process's locks on it.
 *
 * @throws CheckpointCorruptionError if it is not waymark's.
 */
function checkFile(path: string): void {
  // It is open, or SQLite must first roll back what a killed process left half-written.
  if (["-shm", "-journal"].some((end) => existsSync(path + end))) return;
  const bytes = Buffer.alloc(HEADER_BYTES);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, HEADER_BYTES, 0);
  } finally {
    closeSync(file);
  }
  const isDatabase = bytes.toString("latin1", 0, MAGIC.length) === MAGIC;
  if (!isDatabase) throw damaged(path, "a file of another kind");
  if (bytes.readUInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID) {
    throw damaged(path, "a SQLite database of another application");
  }
}
