import { pathToFileURL } from "node:url";
import { missingPeer, peerIfInstalled } from "../../optional-peer.js";
import type { SqlRow } from "../sql/runs.js";

/** A parameter of a statement. */
export type SqliteValue = string | number | bigint | null;

/** A prepared statement, as in the common drivers. Parameters are positional. */
export interface SqliteStatement {
  /** Runs it. */
  run(...params: SqliteValue[]): {
    /** How many rows were changed. */
    readonly changes: number | bigint;
  };
  /** Its first row, keyed by column name; `undefined` or `null` if there is none. */
  get(...params: SqliteValue[]): unknown;
  /** All its rows. */
  all(...params: SqliteValue[]): unknown[];
}

/**
 * The database of a `SqliteStore`: of `node:sqlite`, `bun:sqlite`, `better-sqlite3`, `libsql`, or anything
 * else with these two methods. The store must have the connection to itself: nobody else may open a
 * transaction on it.
 */
export interface SqliteClient {
  /** Runs statements without parameters. */
  exec(sql: string): unknown;
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement;
}

/** How long SQLite itself waits for a lock, in milliseconds; this blocks the event loop. */
const BUSY_TIMEOUT = 5;

/** How many pages the write-ahead log may have before they are copied into the database. */
const CHECKPOINT_PAGES = 1000;

/** An open database with its prepared statements. */
export class Connection {
  /** Where the database is, for messages. */
  readonly place: string;
  readonly #client: SqliteClient;
  readonly #statements = new Map<string, SqliteStatement>();
  #isReadyToWrite = false;
  #flushes: boolean | undefined;

  constructor(client: SqliteClient, place: string) {
    this.#client = client;
    this.place = place;
    // Reports damage where it is read, instead of returning wrong rows.
    this.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT}; PRAGMA cell_size_check = ON`);
  }

  /** Runs statements without parameters. */
  exec(sql: string): void {
    this.#client.exec(sql);
  }

  /** How many rows a statement changed. */
  run(sql: string, ...params: SqliteValue[]): number {
    return Number(this.#prepared(sql).run(...params).changes);
  }

  /** The first row. */
  get(sql: string, ...params: SqliteValue[]): SqlRow | undefined {
    return (this.#prepared(sql).get(...params) as SqlRow | null | undefined) ?? undefined;
  }

  /** All rows. */
  all(sql: string, ...params: SqliteValue[]): SqlRow[] {
    return this.#prepared(sql).all(...params) as SqlRow[];
  }

  /** All rows of a statement that is not worth preparing. */
  query(sql: string, params: readonly SqliteValue[]): SqlRow[] {
    return this.#client.prepare(sql).all(...params) as SqlRow[];
  }

  /** The value of a pragma. */
  pragma(name: string): unknown {
    const value = (this.#client.prepare(`PRAGMA ${name}`).get() as SqlRow | undefined)?.[name];
    return typeof value === "bigint" ? Number(value) : value;
  }

  /**
   * Begins a transaction that writes.
   *
   * @param flushes - whether it must survive a power cut.
   */
  begin(flushes: boolean): void {
    if (!this.#isReadyToWrite) {
      this.exec(
        `PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}; PRAGMA fullfsync = ON`,
      );
      this.#isReadyToWrite = true;
    }
    if (this.#flushes !== flushes) this.exec(`PRAGMA synchronous = ${flushes ? "FULL" : "NORMAL"}`);
    this.#flushes = flushes;
    this.run("BEGIN IMMEDIATE");
  }

  /** Commits what was written since `begin`. */
  commit(): void {
    this.run("COMMIT");
  }

  /** Rolls back what was written since `begin`; SQLite may have done so already. */
  rollback(): void {
    try {
      this.exec("ROLLBACK");
    } catch {
      // No transaction is active.
    }
  }

  #prepared(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#client.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** A client that the store has opened, and closes. */
export interface OwnedClient extends SqliteClient {
  close(): unknown;
}

/** Loads the module of a driver; `undefined` if it is not installed. Tests replace it. */
export type Load = (name: string) => unknown;

type Constructor = new (path: string, options?: object) => OwnedClient;

/** The drivers, and how each opens a file; the first that is available is used. */
const drivers: Readonly<
  Record<string, (module: object, path: string, readOnly: boolean) => OwnedClient>
> = {
  "node:sqlite": (module, path, readOnly) =>
    new (exported(module, "DatabaseSync"))(path, readOnly ? { readOnly } : {}),
  "bun:sqlite": (module, path, readOnly) =>
    new (exported(module, "Database"))(path, readOnly ? { readonly: true } : { readwrite: true }),
  "better-sqlite3": (module, path, readOnly) =>
    new (module as Constructor)(path, { readonly: readOnly, fileMustExist: true }),
  // It has no read-only option, but accepts a URL.
  libsql: (module, path, readOnly) =>
    new (module as Constructor)(readOnly ? `${pathToFileURL(path).href}?mode=ro` : path),
};

function exported(module: object, name: string): Constructor {
  return Reflect.get(module, name) as Constructor;
}

/** Modules of the runtime may be absent; the others are packages. */
const load: Load = (name) => {
  if (name === "node:sqlite") return process.getBuiltinModule?.(name);
  if (name === "bun:sqlite" && process.versions.bun === undefined) return undefined;
  return peerIfInstalled(name);
};

/**
 * Opens a file with the first available driver.
 *
 * @throws ConfigError if there is none.
 */
export function openFile(path: string, readOnly: boolean, loadDriver: Load = load): OwnedClient {
  for (const [name, open] of Object.entries(drivers)) {
    const module = loadDriver(name);
    if (module !== undefined) return open(Object(module), path, readOnly);
  }
  const install = "better-sqlite3 (or libsql), or use Node 22.13 or later, which has one";
  throw missingPeer("SqliteStore.path", "a SQLite driver", install);
}
