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
