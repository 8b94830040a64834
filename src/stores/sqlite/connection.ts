import type { SqlRow } from "../sql/runs.js";
import type { SqliteClient, SqliteStatement, SqliteValue } from "./client.js";

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
