import { ConfigError } from "../../errors.js";
import type { LoadPackage } from "../../optional-peer.js";
import { retrying } from "../retrying.js";
import type { Statement } from "../sql/backend.js";
import type { SqlRow } from "../sql/runs.js";
import type { PostgresClient } from "./client.js";
import { connect, invalidAddress, isInvalidAddress } from "./connect.js";
import type { Database, Sending, Session } from "./database.js";
import { failures } from "./failure.js";
import { migrate, versionOf } from "./schema.js";

/** What a connection needs of its store. */
export interface ConnectionSettings extends Sending {
  readonly client: PostgresClient;
  readonly schema: string;
  readonly retryFor: number;
  /** Whether to write nothing, neither rows nor tables. */
  readonly readOnly: boolean;
}

/**
 * The database of a store: opened and migrated on first use. Statements are sent again after a lost connection, so
 * they must be idempotent.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #load: LoadPackage | undefined;
  #opening: Promise<Database | undefined> | undefined;
  #ready: Database | undefined;

  constructor(settings: ConnectionSettings, load?: LoadPackage) {
    this.#settings = settings;
    this.#load = load;
  }

  /** Runs a statement that only reads. Without tables it returns no rows. */
  read(text: Statement | string, params?: readonly unknown[]): Promise<SqlRow[]> {
    return this.#with((database) => database.query(text, params), []);
  }

  /** Runs a statement that writes. */
  async write(text: Statement, params: readonly unknown[]): Promise<SqlRow[]> {
    this.#checkWritable();
    return this.#with((database) => database.query(text, params), []);
  }

  /** Runs several statements, all or none of them. */
  async transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    this.#checkWritable();
    return this.#with((database) => database.transaction(work), undefined as T);
  }

  /** Queries the database itself, whether it has tables or not; `undefined` if there is no database. */
  async inspect(text: string, params: readonly unknown[]): Promise<SqlRow | undefined> {
    // A folder can be open only once.
    const database = this.#ready ?? (await this.#connect());
    try {
      return (await database?.query(text, params))?.[0];
    } finally {
      if (database !== this.#ready) await database?.close();
    }
  }

  /** Closes the connections that it opened itself; the next use opens them again. */
  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#ready = undefined;
    // If it could not be opened, there is nothing to close.
    const database = await opening?.catch(() => undefined);
    await database?.close();
  }

  #checkWritable(): void {
    if (!this.#settings.readOnly) return;
    throw new ConfigError(
      "PostgresStore.readOnly",
      "is true: this store saves, claims and removes nothing",
    );
  }

  /** @param none - the result if there are no tables and none may be created. */
  #with<T>(action: (database: Database) => Promise<T>, none: T): Promise<T> {
    return retrying(this.#settings.retryFor, failures, async (begin) => {
      const database = this.#ready ?? (await this.#open());
      begin();
      return database === undefined ? none : action(database);
    });
  }

  #open(): Promise<Database | undefined> {
    if (this.#opening !== undefined) return this.#opening;
    const forget = (): void => {
      if (this.#opening === opening) this.#opening = undefined;
    };
    const opening: Promise<Database | undefined> = this.#make().then(
      (database) => {
        // Tables that are missing now may exist the next time.
        if (database === undefined) forget();
        else if (this.#opening === opening) this.#ready = database;
        return database;
      },
      (error: unknown) => {
        forget();
        throw error;
      },
    );
    this.#opening = opening;
    return opening;
  }

  /** The database with its tables; `undefined` if they are missing and may not be created. */
  async #make(): Promise<Database | undefined> {
    const { schema, readOnly } = this.#settings;
    const database = await this.#connect();
    if (database === undefined) return undefined;
    try {
      if (!readOnly) await migrate(database, schema);
      else if ((await versionOf(database, schema)) === 0) {
        await database.close();
        return undefined;
      }
    } catch (error) {
      await database.close();
      throw isInvalidAddress(error) ? invalidAddress() : error;
    }
    return database;
  }

  #connect(): Promise<Database | undefined> {
    const { client, readOnly } = this.#settings;
    return connect(client, this.#settings, readOnly, this.#load);
  }
}
