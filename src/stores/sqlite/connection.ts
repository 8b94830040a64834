import { pathToFileURL } from "node:url";
import { ConfigError } from "../../errors.js";
import { missingPeer, peerIfInstalled } from "../../optional-peer.js";
import type { SqlRow } from "../sql/backend.js";
import { damaged } from "./failure.js";

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

/*
 * runs         one row per run: its head, its newest header, its claim
 * checkpoints  one row per record, in the order in which they were written
 * graphs       one row per graph: its topology by its fingerprint
 * epochs       one row: the highest epoch of any claim, so that none is ever reused
 *
 * A run has a row from its first claim or save on; until something is saved, its sequence is 0 and its
 * status "". Headers and contents are JSON text, exactly as hashed: `SELECT header ->> 'node' FROM runs`.
 * The content is the last column, so that reading headers does not read its overflow pages.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,
    checkpoint_id TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '',
    graph TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    saved_at TEXT NOT NULL DEFAULT '',
    header TEXT NOT NULL DEFAULT ''
  );
  CREATE INDEX runs_by_status ON runs (status, saved_at, run_id);
  CREATE INDEX runs_by_graph ON runs (graph, status, saved_at, run_id);
  CREATE TABLE checkpoints (
    run INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    base INTEGER NOT NULL,
    aside INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    checkpoint_id TEXT NOT NULL,
    header TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    content TEXT NOT NULL
  );
  CREATE UNIQUE INDEX checkpoints_by_run ON checkpoints (run, sequence);
  CREATE INDEX checkpoints_by_id ON checkpoints (checkpoint_id);
  CREATE TABLE graphs (fingerprint TEXT PRIMARY KEY, topology TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE epochs (last INTEGER NOT NULL);
  INSERT INTO epochs VALUES (0);
  `,
];

/** "wymk", in the header of every waymark database. */
export const APPLICATION_ID = 0x77796d6b;

/**
 * One statement, so that the three values are consistent while another process creates the tables. Litestream
 * creates two tables of its own in an empty database.
 */
const SIGNATURE = `
  SELECT application_id AS application, user_version AS version,
    (SELECT count(*) FROM sqlite_schema WHERE tbl_name NOT GLOB '_litestream_*') AS tables
  FROM pragma_application_id, pragma_user_version`;

/**
 * Whether the tables exist.
 *
 * @throws ConfigError if a newer version made them.
 * @throws CheckpointCorruptionError if it is another application's database.
 */
export function hasTables(connection: Connection): boolean {
  // Both were set together with the tables, and reading them takes a tenth of the time of the full query.
  const isOurs = connection.pragma("application_id") === APPLICATION_ID;
  if (isOurs && connection.pragma("user_version") === migrations.length) return true;
  const found = connection.get(SIGNATURE) ?? {};
  const { application, tables } = found;
  const version = Number(found.version);
  if ([application, version, tables].every((one) => Number(one) === 0)) return false;
  if (Number(application) !== APPLICATION_ID) {
    throw damaged(connection.place, "a SQLite database of another application");
  }
  if (version < 1) throw damaged(connection.place, "a database with an unknown version");
  if (version <= migrations.length) return version === migrations.length;
  throw new ConfigError(
    "SqliteStore.path",
    `must be a database of a version up to ${migrations.length}; ${connection.place} has version ${version}, which a newer waymark made`,
  );
}

/** Creates the tables. If several processes try at once, one succeeds. */
export function makeTables(connection: Connection): void {
  connection.exec("BEGIN");
  try {
    // This starts the write transaction, and only an empty database accepts it. Outside the transaction,
    // another process could see a database without waymark's signature and take it for another application's.
    connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
    if (!hasTables(connection)) {
      const version = Number(connection.pragma("user_version"));
      for (const migration of migrations.slice(version)) connection.exec(migration);
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      connection.exec(`PRAGMA user_version = ${migrations.length}`);
    }
    connection.exec("COMMIT");
  } catch (error) {
    connection.rollback();
    throw error;
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
