/** What can be asked: `query` of pg and of PGlite. */
export interface PostgresQueryable {
  /** Runs one statement with its parameters `$1`, `$2`, …; gives its rows. */
  query(
    text: string,
    params?: unknown[],
  ): Promise<{
    /** One object for each row, by the names of its columns. */
    rows: unknown[];
  }>;
}

/** One connection out of a pool, to be given back. */
export interface PostgresConnection extends PostgresQueryable {
  /** Gives it back; with an error or `true` it is closed. */
  release(error?: Error | boolean): void;
}

/** The part of a `Pool` of pg that is used. */
export interface PostgresPool extends PostgresQueryable {
  /** A connection for several statements, which makes up a transaction. */
  connect(): Promise<PostgresConnection>;
}

/** The part of a `PGlite` that is used. */
export interface EmbeddedPostgres extends PostgresQueryable {
  /** Runs `work` in one transaction, which is undone when it throws. */
  transaction<T>(work: (transaction: PostgresQueryable) => Promise<T>): Promise<T>;
}

/**
 * What a `PostgresStore` talks to: a `Pool` of pg, a `PGlite`, or a string it makes one of.
 *
 * - `postgres://…` or `postgresql://…`: a server, by the package `pg`.
 * - `pglite:<folder>`: a folder, by the package `@electric-sql/pglite`; `pglite:` alone is in memory.
 */
export type PostgresClient = PostgresPool | EmbeddedPostgres | string;
