import { ConfigError } from "../../errors.js";
import { retrying } from "../retrying.js";
import type { Statement } from "../sql/backend.js";
import type { SqlRow } from "../sql/runs.js";
import type { PostgresClient } from "./client.js";
import { connect, invalidAddress, isInvalidAddress, type Load } from "./connect.js";
import type { Database, Sending, Session } from "./database.js";
import { failures } from "./failure.js";
import { migrate, versionOf } from "./schema.js";

/** What a connection needs of its store. */
export interface ConnectionSettings extends Sending {
  readonly client: PostgresClient;
  readonly schema: string;
  readonly retryFor: number;
  /** Whether nothing may be written: no row, and no table either. */
  readonly readOnly: boolean;
}

/**
 * The database of a store: opened, and brought to this version, when it is first used. What is asked of
 * it is asked again when the connection is lost, so it must do no harm a second time.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #load: Load | undefined;
  #opening: Promise<Database | undefined> | undefined;
  #ready: Database | undefined;

  constructor(settings: ConnectionSettings, load?: Load) {
    this.#settings = settings;
    this.#load = load;
  }

  /** Runs a statement that only reads. Where there are no tables it finds nothing. */
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

  /** Asks a database about itself, whether it has tables or not; `undefined` where there is none. */
  async inspect(text: string, params: readonly unknown[]): Promise<SqlRow | undefined> {
    // A folder can be open only once.
    const database = this.#ready ?? (await this.#connect());
    try {
      return (await database?.query(text, params))?.[0];
    } finally {
      if (database !== this.#ready) await database?.close();
    }
  }

  /** Closes what it has opened itself; the next use opens it again. */
  async close(): Promise<void> {
    const opening = this.#opening;
    this.#opening = undefined;
    this.#ready = undefined;
    // One that could not be opened has nothing to close.
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

  /** @param none - what comes of it where nothing was ever saved, and nothing may be written. */
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
        // Tables that are not there yet may be the next time.
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

  /** The database with its tables; `undefined` if they are missing and nothing may be written. */
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
