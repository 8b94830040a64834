/** The `query` method of pg and PGlite. */
export interface PostgresQueryable {
  /** Runs one statement with its parameters `$1`, `$2`, … and returns its rows. */
  query(
    text: string,
    params?: unknown[],
  ): Promise<{
    /** One object per row, keyed by column name. */
    rows: unknown[];
  }>;
}

/** A connection checked out of a pool. */
export interface PostgresConnection extends PostgresQueryable {
  /** Returns it to the pool; with an error or `true` it is closed instead. */
  release(error?: Error | boolean): void;
}

/** The part of pg's `Pool` that is used. */
export interface PostgresPool extends PostgresQueryable {
  /** Checks out a connection, for the statements of a transaction. */
  connect(): Promise<PostgresConnection>;
}

/** The part of `PGlite` that is used. */
export interface EmbeddedPostgres extends PostgresQueryable {
  /** Runs `work` in one transaction, which is rolled back if it throws. */
  transaction<T>(work: (transaction: PostgresQueryable) => Promise<T>): Promise<T>;
}

/**
 * The database of a `PostgresStore`: a `Pool` of pg, a `PGlite`, or the address of one.
 *
 * - `postgres://…` or `postgresql://…`: a server, through the package `pg`.
 * - `pglite:<folder>`: a folder, through the package `@electric-sql/pglite`; `pglite:` alone is in memory.
 */
export type PostgresClient = PostgresPool | EmbeddedPostgres | string;
