import { statSync } from "node:fs";
import {
  type CheckpointAt,
  type HistoryEntry,
  notFound,
  type Retention,
  type RunFilter,
  type RunSummary,
  type StoreContext,
} from "../../checkpoint/store.js";
import type { State } from "../../state/state.js";
import { connect } from "../../stores/postgres/connect.js";
import type { Row } from "../../stores/postgres/database.js";
import { quoted } from "../../stores/postgres/schema.js";
import { PostgresStore, type PostgresStoreOptions } from "../../stores/postgres.js";
import { problem } from "../exit.js";

/** Who only looks does not want to wait long for a server that is not there, in milliseconds. */
const RETRY = 1000;
const READ_ONLY = "default_transaction_read_only";
/** What Postgres says of a statement that would write. */
const WOULD_WRITE = "25006";

/** What is known of a database. */
export interface DatabaseFacts {
  readonly version: string;
  /** Whether waymark's tables are there. */
  readonly isMade: boolean;
  /** Whether this user may save, or make what is missing for it. */
  readonly canWrite: boolean;
  readonly bytes: number;
}

/**
 * A store in Postgres whose sessions may not write: no row is set aside, no table made. A database in
 * which nothing was saved yet has no runs.
 */
export class ReadOnlyPostgres extends PostgresStore {
  readonly #client: string;
  /** The folder of a PGlite. */
  readonly #folder: string | undefined;

  constructor(options: PostgresStoreOptions & { readonly client: string }) {
    super({ ...options, retryFor: RETRY }, load);
    const { client } = options;
    this.#client = client;
    this.#folder = /^pglite:(.*)$/s.exec(client)?.[1];
  }

  override load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    const none = (): State<D> => {
      throw notFound(runId, at);
    };
    return this.#unlessNew(() => super.load<D>(runId, at, context), none);
  }

  override list(): Promise<string[]> {
    return this.#unlessNew(
      () => super.list(),
      () => [],
    );
  }

  override history(runId: string): Promise<HistoryEntry[]> {
    return this.#unlessNew(
      () => super.history(runId),
      () => [],
    );
  }

  override runs(filter?: RunFilter): Promise<RunSummary[]> {
    return this.#unlessNew(
      () => super.runs(filter),
      () => [],
    );
  }

  override prune(retention: Retention): Promise<string[]> {
    return this.#unlessNew(
      () => super.prune(retention),
      () => [],
    );
  }

  /** The runs that a living process works on. */
  async claimed(): Promise<ReadonlySet<string>> {
    // Nobody else can have a PGlite open.
    if (this.#folder !== undefined) return new Set();
    const runs = `${quoted(this.schema)}.runs`;
    const rows = await this.#ask(
      `SELECT run_id FROM ${runs} WHERE lease_until > clock_timestamp()`,
    );
    return new Set(rows.map(({ run_id }) => String(run_id)));
  }

  /** What is known of the database; `undefined` for a folder that is not there yet. */
  async facts(): Promise<DatabaseFacts | undefined> {
    if (!this.#isThere()) return undefined;
    const table = `${quoted(this.schema)}.checkpoints`;
    const [row = {}] = await this.#ask(
      `SELECT current_setting('server_version') AS version,
        pg_database_size(current_database()) AS bytes,
        to_regclass($1) IS NOT NULL AS made,
        CASE WHEN to_regclass($1) IS NULL
          THEN has_database_privilege(current_database(), 'CREATE')
          ELSE has_table_privilege(to_regclass($1)::oid, 'INSERT') END AS may`,
      [table],
    );
    return {
      version: String(row.version),
      isMade: row.made === true,
      canWrite: row.may === true,
      bytes: Number(row.bytes),
    };
  }

  /** Does something, unless nothing was ever saved here. */
  async #unlessNew<T>(action: () => Promise<T>, none: () => T): Promise<T> {
    if (!this.#isThere()) return none();
    try {
      return await action();
    } catch (error) {
      if (Reflect.get(Object(error), "code") !== WOULD_WRITE) throw error;
      if (!(await this.#isMade())) return none();
      throw problem(
        "the tables are of an older version",
        "the next program that saves there brings them to this one",
        error,
      );
    }
  }

  /** Whether there is something to open; PGlite would make it. */
  #isThere(): boolean {
    if (this.#folder === undefined) return true;
    const there = statSync(this.#folder, { throwIfNoEntry: false });
    if (there === undefined || there.isDirectory()) return there !== undefined;
    throw problem(`${this.#folder} is no folder`, "pglite:DIR wants the folder of a database");
  }

  async #isMade(): Promise<boolean> {
    const rows = await this.#ask(
      "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'checkpoints'",
      [this.schema],
    );
    return rows.length > 0;
  }

  /** Asks by a connection of its own, which makes no tables. */
  async #ask(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    // A PGlite can be open once only; the store opens it again when it is used.
    if (this.#folder !== undefined) await this.close();
    const database = await connect(this.#client, false, load);
    try {
      return await database.query(text, params);
    } finally {
      await database.close();
    }
  }
}

/** The packages, so that what they connect to can't be written. */
async function load(name: string): Promise<unknown> {
  if (name === "pg") {
    const { default: pg } = await import("pg");
    const Pool = class extends pg.Pool {
      constructor(config: object) {
        super({ ...config, options: `-c ${READ_ONLY}=on` });
      }
    };
    return { default: { Pool } };
  }
  const { PGlite } = await import("@electric-sql/pglite");
  const create = async (folder?: string) => {
    const client = await PGlite.create(folder);
    await client.exec(`SET ${READ_ONLY} = on`);
    return client;
  };
  return { PGlite: { create } };
}
