/** What a parameter of a statement can be. */
export type SqliteValue = string | number | bigint | null;

/** A prepared statement, as the common drivers have it. Parameters are positional. */
export interface SqliteStatement {
  /** Runs it; `changes` says how many rows it changed. */
  run(...params: SqliteValue[]): {
    /** How many rows were changed. */
    readonly changes: number | bigint;
  };
  /** Its first row, by the names of the columns; nothing if there is none. */
  get(...params: SqliteValue[]): unknown;
  /** All its rows. */
  all(...params: SqliteValue[]): unknown[];
}

/**
 * What a `SqliteStore` talks to: a database of `node:sqlite`, `bun:sqlite`, `better-sqlite3`, `libsql`, or
 * anything else with these two methods. It must be the store's own: nobody else may have a transaction
 * open on this connection.
 */
export interface SqliteClient {
  /** Runs statements without parameters. */
  exec(sql: string): unknown;
  /** Prepares one statement. */
  prepare(sql: string): SqliteStatement;
}
