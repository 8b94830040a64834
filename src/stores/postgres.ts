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
import { check, checkOptions, flag, hasMethods, integer } from "../options.js";
import { PostgresBackend } from "./postgres/backend.js";
import { checkAddress } from "./postgres/connect.js";
import { Connection } from "./postgres/connection.js";
import type {
  EmbeddedPostgres,
  PostgresClient,
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
} from "./postgres/database.js";
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
  /** A `Pool` of pg, a `PGlite`, or the address of one; see {@link PostgresClient}. */
  readonly client: PostgresClient;
  /** The schema for the tables; `waymark` by default. It is created on first use. */
  readonly schema?: string;
  /**
   * Write a whole State at least once in this many checkpoints of a run; 256 by default, 1 for every one.
   * It is written sooner if the changes since the last one add up to more than its size and more than 16 KB,
   * so that a load reads at most about twice that size; and when the run ends, unless little has changed.
   */
  readonly snapshotEvery?: number;
  /**
   * For how many milliseconds to retry if a connection is lost, the server is starting, or there are too many
   * connections; 10,000 by default, 0 for never. A retry never does anything twice.
   */
  readonly retryFor?: number;
  /**
   * How many milliseconds to wait for the response to a statement; 30,000 by default, `Infinity` for no limit.
   * After that its connection is closed, and a save may or may not have happened: the next save finds
   * out. Only for pg; PGlite runs inside this process.
   */
  readonly statementTimeout?: number;
  /**
   * Whether pg prepares each statement once per connection; true by default. Set it to false behind a pooler
   * that may use a different connection for each transaction and doesn't support prepared statements.
   */
  readonly prepare?: boolean;
  /**
   * Opens the store for reading only; false by default. It then creates no tables and sets nothing aside;
   * without tables it has no runs. Saves, claims and removals throw a ConfigError.
   */
  readonly readOnly?: boolean;
}

/** Postgres silently truncates longer names. */
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
 * are optional packages. The tables are the same, so a project can start embedded and move to a server later. The
 * store creates them on first use.
 *
 * A save is one statement that writes only what changed, and only if the run is still at the State's sequence.
 * While a run is claimed through this store, its saves also need that claim: once another process has claimed
 * the run, this one can't write to it. Statements that fail because a connection was lost are retried.
 *
 * On a server, acknowledged saves survive a power cut. With PGlite they survive a killed process; it never
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
    const settings = { client, schema, retryFor, statementTimeout, prepare, readOnly, load };
    const connection = new Connection(settings);
    super(new PostgresBackend(connection, schema), { ...options, snapshotEvery });
    this.schema = schema;
    this.#connection = connection;
  }

  /**
   * Facts about the database; `undefined` for a folder that does not exist yet.
   *
   * @internal
   */
  async facts() {
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
        /** Whether this user may save, or create the missing tables. */
        canWrite: row.may === true,
        bytes: Number(row.bytes),
      }
    );
  }
}

function isPoolOrEmbedded(value: unknown): boolean {
  // A single connection of pg has all that a pool has, and escapes names besides.
  const isPool = hasMethods(value, "query", "connect") && !hasMethods(value, "escapeIdentifier");
  return isPool || hasMethods(value, "query", "transaction");
}
