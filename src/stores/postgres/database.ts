import { createHash } from "node:crypto";
import { ConfigError } from "../../errors.js";
import type { EmbeddedPostgres, PostgresPool, PostgresQueryable } from "./client.js";

/** A statement, and the name to prepare it by. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A row, by column. */
export type Row = Readonly<Record<string, unknown>>;

/** Where statements can be run. */
export interface Session {
  query(statement: Statement | string, params?: readonly unknown[]): Promise<Row[]>;
}

/** A server or a folder. */
export interface Database extends Session {
  /** All that `work` does, or nothing of it. */
  transaction<T>(work: (session: Session) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** A statement with a name of its own, whatever schema is in it. */
export function statement(text: string): Statement {
  const hash = createHash("sha256").update(text).digest("hex");
  return { name: `waymark_${hash.slice(0, 32)}`, text };
}

/** `query` of pg also takes a statement with a name, which it prepares once for a connection. */
type Prepared = (config: Statement & { values: unknown[] }) => Promise<{ rows: unknown[] }>;

/** A pool of pg. */
export class PoolDatabase implements Database {
  readonly #pool: PostgresPool;
  readonly #prepare: boolean;
  readonly #close: () => Promise<void>;

  constructor(pool: PostgresPool, prepare: boolean, close: () => Promise<void> = async () => {}) {
    this.#pool = pool;
    // Only pg and what is made of it count their connections, and only they take names.
    this.#prepare = prepare && typeof Reflect.get(pool, "totalCount") === "number";
    this.#close = close;
    listenTo(pool);
  }

  query(text: Statement | string, params: readonly unknown[] = []): Promise<Row[]> {
    return ask(this.#pool, this.#prepare, text, params);
  }

  async transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const connection = await this.#pool.connect();
    if (typeof connection?.release !== "function") {
      throw new ConfigError("PostgresStore.client", "wants a Pool of pg, got a single connection");
    }
    let failure: Error | undefined;
    try {
      await connection.query("BEGIN");
      const result = await work({
        query: (text, params = []) => ask(connection, this.#prepare, text, params),
      });
      await connection.query("COMMIT");
      return result;
    } catch (error) {
      await ask(connection, false, "ROLLBACK", []).catch((worse: Error) => {
        failure = worse;
      });
      throw error;
    } finally {
      connection.release(failure);
    }
  }

  close(): Promise<void> {
    return this.#close();
  }
}

const heard = new WeakSet<object>();

/**
 * Without a listener the loss of a connection ends the process: a pool tells of one that is idle, and
 * one that was taken out of it tells itself, between two statements. The next statement fails anyway.
 */
function listenTo(source: object): void {
  const on: unknown = Reflect.get(source, "on");
  if (heard.has(source) || typeof on !== "function") return;
  heard.add(source);
  on.call(source, "error", () => {});
  // Not once it is here: what was lost may be told in the same moment as that it is free.
  on.call(source, "acquire", listenTo);
}

/** A PGlite. */
export class EmbeddedDatabase implements Database {
  readonly #client: EmbeddedPostgres;
  readonly #close: () => Promise<void>;

  constructor(client: EmbeddedPostgres, close: () => Promise<void> = async () => {}) {
    this.#client = client;
    this.#close = close;
  }

  query(text: Statement | string, params: readonly unknown[] = []): Promise<Row[]> {
    return ask(this.#client, false, text, params);
  }

  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#client.transaction((transaction) =>
      work({ query: (text, params = []) => ask(transaction, false, text, params) }),
    );
  }

  close(): Promise<void> {
    return this.#close();
  }
}

async function ask(
  client: PostgresQueryable,
  prepare: boolean,
  asked: Statement | string,
  params: readonly unknown[],
): Promise<Row[]> {
  const values = [...params];
  if (typeof asked === "string") return (await client.query(asked, values)).rows as Row[];
  const { name, text } = asked;
  const { rows } = prepare
    ? await (client.query as unknown as Prepared).call(client, { name, text, values })
    : await client.query(text, values);
  return rows as Row[];
}
