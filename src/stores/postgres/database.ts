import { ConfigError } from "../../errors.js";
import { isTimeout, noAnswer } from "../postgres-failure.js";
import { answeredWithin, listenTo } from "../server.js";
import type { SqlRow, Statement } from "../sql/backend.js";

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

/** Where statements can be run. */
export interface Session {
  query(statement: Statement | string, params?: readonly unknown[]): Promise<SqlRow[]>;
}

/** A server or a folder. */
export interface Database extends Session {
  /** Runs `work` in a transaction. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** How statements are sent. */
export interface Sending {
  /** Whether to prepare each statement once for a connection. */
  readonly prepare: boolean;
  /** How long to wait for a response, in milliseconds. */
  readonly statementTimeout: number;
}

/** Further options of pg's `query`: a name under which to prepare the statement, and a timeout. */
type ConfiguredQuery = (config: {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
  readonly query_timeout?: number;
}) => Promise<{ rows: unknown[] }>;

/** A pool of pg. */
export function poolDatabase(
  pool: PostgresPool,
  sending: Sending,
  close: () => Promise<void> = async () => {},
): Database {
  const { statementTimeout: timeout } = sending;
  // Only pg and its derivatives count their connections, and only they accept these options.
  const options = typeof Reflect.get(pool, "totalCount") === "number" ? sending : undefined;
  listenTo(pool);
  return {
    query: (text, params = []) => {
      // The pool closes a connection whose statement failed or timed out. It may have to connect first, and the
      // user's own pool may have no limit for that.
      const asked = ask(pool, options, text, params);
      return answeredWithin(2 * timeout, asked, () => {
        throw noAnswer();
      });
    },
    transaction: async (work) => {
      const connection = await checkedOut(pool, timeout);
      const { query } = sessionOf(connection, options);
      let failure: Error | undefined;
      try {
        await query("BEGIN");
        const result = await work({ query });
        await query("COMMIT");
        return result;
      } catch (error) {
        // A connection that timed out is not used again.
        if (isTimeout(error)) failure = error;
        else await query("ROLLBACK").catch((worse: Error) => (failure = worse));
        throw error;
      } finally {
        connection.release(failure);
      }
    },
    close,
  };
}

/** A connection of a pool. */
async function checkedOut(pool: PostgresPool, timeout: number): Promise<PostgresConnection> {
  const connecting = pool.connect();
  const connection = await answeredWithin(timeout, connecting, () => {
    // A connection that arrives too late goes back to the pool.
    connecting.then((late) => late.release()).catch(() => {});
    throw new Error("timeout exceeded when trying to connect");
  });
  if (typeof connection?.release === "function") return connection;
  throw new ConfigError("PostgresStore.client", "must be a Pool of pg; got a single connection");
}

/** A PGlite. */
export function embeddedDatabase(
  client: EmbeddedPostgres,
  close: () => Promise<void> = async () => {},
): Database {
  return {
    ...sessionOf(client, undefined),
    transaction: (work) => client.transaction((begun) => work(sessionOf(begun, undefined))),
    close,
  };
}

function sessionOf(client: PostgresQueryable, sending: Sending | undefined): Session {
  return { query: (text, params = []) => ask(client, sending, text, params) };
}

async function ask(
  client: PostgresQueryable,
  sending: Sending | undefined,
  asked: Statement | string,
  params: readonly unknown[],
): Promise<SqlRow[]> {
  const values = [...params];
  const isNamed = typeof asked !== "string";
  const text = isNamed ? asked.text : asked;
  if (sending === undefined) return (await client.query(text, values)).rows as SqlRow[];
  const { prepare, statementTimeout } = sending;
  const { rows } = await (client.query as unknown as ConfiguredQuery).call(client, {
    text,
    values,
    ...(prepare && isNamed && { name: asked.name }),
    ...(Number.isFinite(statementTimeout) && { query_timeout: statementTimeout }),
  });
  return rows as SqlRow[];
}
