/**
 * Checkpoints in Postgres: embedded in the process by PGlite, or on a server.
 *
 * @packageDocumentation
 */
import {
  RecordStore,
  type RecordStoreOptions,
  recordStoreChecks,
} from "../checkpoint/records/record-store.js";
import type { LoadPackage } from "../optional-peer.js";
import { check, checkOptions, flag, integer } from "../options.js";
import { PostgresBackend } from "./postgres/backend.js";
import type {
  EmbeddedPostgres,
  PostgresClient,
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
} from "./postgres/client.js";
import { checkAddress } from "./postgres/connect.js";
import { Connection } from "./postgres/connection.js";
import { quoted } from "./postgres/schema.js";

export type { RecordStore, RecordStoreOptions } from "../checkpoint/records/record-store.js";
export type { CodecOptions } from "../codecs/pipeline.js";
export type {
  EmbeddedPostgres,
  PostgresClient,
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
};

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions extends RecordStoreOptions {
  /** A `Pool` of pg, a `PGlite`, or a string to make one of; see {@link PostgresClient}. */
  readonly client: PostgresClient;
  /** The schema for the tables; `waymark` by default. It is created when it is needed. */
  readonly schema?: string;
  /**
   * Write a whole State at least once in this many checkpoints of a run; 256 by default, 1 for every one.
   * Sooner when what changed since the last whole one comes to more than that one, and to more than 16 KB, so
   * about twice its size is read at most to load a State; and when the run ends, unless little has changed
   * since.
   */
  readonly snapshotEvery?: number;
  /**
   * For how many milliseconds to retry what a lost connection, a server that starts, or too many
   * connections prevented; 10,000 by default, 0 for never. Nothing is done twice by it.
   */
  readonly retryFor?: number;
  /**
   * How many milliseconds to wait for the answer to a statement; 30,000 by default, `Infinity` for no limit.
   * After that its connection is closed, and a save may or may not have happened: the next save finds
   * out. Only with pg; PGlite runs inside this process.
   */
  readonly statementTimeout?: number;
  /**
   * Whether pg prepares each statement once per connection; true by default. Set it to false behind a pooler
   * that may use a different connection for each transaction and doesn't support prepared statements.
   */
  readonly prepare?: boolean;
  /**
   * Whether the store only reads; false by default. It then creates no tables, and sets nothing aside;
   * where there are no tables it has no runs. Saves, claims and removals throw a ConfigError.
   */
  readonly readOnly?: boolean;
}

/** What is known of a database. */
interface DatabaseFacts {
  /** The version of Postgres. */
  readonly version: string;
  /** Whether waymark's tables are there. */
  readonly hasTables: boolean;
  /** Whether this user may save, or create the tables that are missing for it. */
  readonly canWrite: boolean;
  /** The size of the database. */
  readonly bytes: number;
}

/** Postgres cuts off longer names without a word. */
const LONGEST_NAME = 63;

const isClient = check(
  'a Pool of pg, a PGlite, "postgres://…" or "pglite:<folder>"',
  (value) => typeof value === "string" || isPoolOrEmbedded(value),
);

const isSchema = check(
  `a name of 1 to ${LONGEST_NAME} bytes`,
  (value) =>
    typeof value === "string" &&
    value !== "" &&
    !/[\0\p{Surrogate}]/u.test(value) &&
    Buffer.byteLength(value) <= LONGEST_NAME,
);

/**
 * Keeps checkpoints in two Postgres tables, on a server with a `Pool` of pg, or in a folder with PGlite; both
 * are optional packages. The tables are the same, so a project can start embedded and move. The store creates
 * them itself when it is first used.
 *
 * A save is one statement that writes only what changed, and only if the run is still at the State's sequence.
 * While a run is claimed through this store, its saves also need that claim: once another process has claimed
 * the run, this one can write nothing more to it. What fails because a connection was lost is retried.
 *
 * A server keeps what it acknowledged through a power cut. PGlite keeps it if the process is killed, but never
 * flushes to disk, and its folder can be used by one process at a time.
 *
 * @example
 * ```ts
 * import { PGlite } from "@electric-sql/pglite";
 * import { State } from "waymark";
 * import { PostgresStore } from "waymark/stores/postgres";
 *
 * const store = new PostgresStore({ client: new PGlite() });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * const loaded = await store.load<{ topic: string }>(saved.runId);
 * console.log(loaded.data.topic); // cairns
 * await store.close();
 * ```
 */
export class PostgresStore extends RecordStore {
  /** The schema that its tables are in. */
  readonly schema: string;
  readonly #connection: Connection;
  readonly #backend: PostgresBackend;

  /** @throws ConfigError if an option is invalid. */
  constructor(options: PostgresStoreOptions);
  /** @internal */
  constructor(options: PostgresStoreOptions, load: LoadPackage);
  constructor(options: PostgresStoreOptions, load?: LoadPackage) {
    checkOptions("PostgresStore", options, {
      ...recordStoreChecks,
      client: isClient,
      schema: isSchema,
      snapshotEvery: integer(1),
      retryFor: integer(0),
      statementTimeout: integer(1, true),
      prepare: flag,
      readOnly: flag,
    });
    const { client, schema = "waymark", snapshotEvery = 256, retryFor = 10_000 } = options;
    const { statementTimeout = 30_000, prepare = true, readOnly = false } = options;
    isClient("PostgresStore.client", client);
    checkAddress(client);
    const settings = { client, schema, retryFor, statementTimeout, prepare, readOnly };
    const connection = new Connection(settings, load);
    const backend = new PostgresBackend(connection, schema);
    super(backend, { ...options, snapshotEvery });
    this.schema = schema;
    this.#connection = connection;
    this.#backend = backend;
  }

  /**
   * The runs that a living process has claimed.
   *
   * @internal
   */
  claimed(): Promise<ReadonlySet<string>> {
    return this.#backend.claimed();
  }

  /**
   * What is known of the database; `undefined` for a folder that is not there yet.
   *
   * @internal
   */
  async facts(): Promise<DatabaseFacts | undefined> {
    const row = await this.#connection.inspect(
      `SELECT current_setting('server_version') AS version,
        pg_database_size(current_database()) AS bytes,
        to_regclass($1) IS NOT NULL AS made,
        CASE WHEN to_regclass($1) IS NULL
          THEN has_database_privilege(current_database(), 'CREATE')
          ELSE has_table_privilege(to_regclass($1)::oid, 'INSERT') END AS may`,
      [`${quoted(this.schema)}.checkpoints`],
    );
    return (
      row && {
        version: String(row.version),
        hasTables: row.made === true,
        canWrite: row.may === true,
        bytes: Number(row.bytes),
      }
    );
  }
}

function isPoolOrEmbedded(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const has = (method: string): boolean => typeof Reflect.get(value, method) === "function";
  // A single connection of pg has all that a pool has, and escapes names besides.
  return has("query") && (has("transaction") || (has("connect") && !has("escapeIdentifier")));
}
