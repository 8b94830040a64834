import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Mutex } from "../../concurrency.js";
import { ConfigError, messageOf, systemCode } from "../../errors.js";
import type { SqliteClient } from "./client.js";
import { Connection } from "./connection.js";
import { type Load, type OwnedClient, openFile } from "./drivers.js";
import { damaged, failure, isBusy, isDamage } from "./failure.js";
import { APPLICATION_ID, hasTables, makeTables } from "./schema.js";

/** Where the database is, and how it is used. */
export interface DatabaseSettings {
  /** The file, as an absolute path; `undefined` for a client. */
  readonly path: string | undefined;
  readonly client: SqliteClient | undefined;
  readonly readOnly: boolean;
  /** For how many milliseconds to retry while another process holds a lock. */
  readonly busyFor: number;
  readonly load: Load | undefined;
}

/** An open database. A new one has no tables until the first write. */
interface Opened {
  readonly connection: Connection;
  readonly owned: OwnedClient | undefined;
  hasTables: boolean;
}

const MAGIC = "SQLite format 3\0";
const APPLICATION_ID_AT = 68;
const HEADER_BYTES = 100;

/** The database of a store: opened on first use, created by the first write. */
export class Database {
  /** Where it is, for messages. */
  readonly place: string;
  readonly #settings: DatabaseSettings;
  readonly #mutex = new Mutex();
  #opened: Opened | undefined;
  #isDamaged = false;

  constructor(settings: DatabaseSettings) {
    this.#settings = settings;
    this.place = settings.path ?? "the database of the given client";
  }

  /** The connection, if it is open and has its tables. */
  get ready(): Connection | undefined {
    return this.#opened?.hasTables === true ? this.#opened.connection : undefined;
  }

  /** Reads; returns `none` if there is no database. Retries while another process holds a lock. */
  read<T>(read: (connection: Connection) => T, none: T): Promise<T> {
    return this.#retried(async () => {
      const connection = this.ready ?? (await this.#open(false));
      return connection === undefined ? none : read(connection);
    }, true);
  }

  /** The connection for writing; creates the database if necessary. */
  async writing(): Promise<Connection> {
    const connection = this.ready ?? (await this.#retried(() => this.#open(true), false));
    if (connection === undefined) throw new Error("a database that was made is not there");
    return connection;
  }

  /** @throws ConfigError if the store is read-only. */
  checkWritable(): void {
    if (!this.#settings.readOnly) return;
    throw new ConfigError(
      "SqliteStore.readOnly",
      `is true: nothing can be written to ${this.place}`,
    );
  }

  /** Converts a driver's error to the one that the store throws. */
  failure(error: unknown, { unsure = false, isReading = false } = {}): Error {
    if (!isDamage(error, isReading)) return failure(error, unsure);
    this.#isDamaged = true;
    return damaged(this.place, messageOf(error), error);
  }

  /**
   * Waits a little before retrying what a lock of another process prevented.
   *
   * @throws the converted error if it is not about a lock, or the lock has lasted too long.
   */
  async wait(error: unknown, since: number, isReading = false): Promise<void> {
    const waited = performance.now() - since;
    if (!isBusy(error) || waited > this.#settings.busyFor) throw this.failure(error, { isReading });
    await sleep(1 + Math.random() * Math.min(20, 2 + waited / 10));
  }

  /** Closes the file. The last process to close it removes the write-ahead log. */
  close(): Promise<void> {
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

  async #retried<T>(action: () => Promise<T>, isReading: boolean): Promise<T> {
    for (const since = performance.now(); ; ) {
      try {
        return await action();
      } catch (error) {
        await this.wait(error, since, isReading);
      }
    }
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
    const { path, client, readOnly, load } = this.#settings;
    if (path === undefined || client !== undefined) {
      return client && { ...this.#inspect(client), owned: undefined };
    }
    if (((await sizeOf(path)) ?? 0) > 0) checkFile(path);
    else if (toWrite) await create(path);
    else return undefined;
    const owned = openFile(path, readOnly, load);
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

/** Creates an empty file that only its owner can read, with its parent folders. */
async function create(path: string): Promise<void> {
  const folder = dirname(path);
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
  }
  // SQLite syncs the folder of the file; this syncs its parents.
  for (
    let made = folder;
    first !== undefined && made.length >= first.length;
    made = dirname(made)
  ) {
    const parent = await open(dirname(made), "r");
    await parent.sync().finally(() => parent.close());
  }
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
