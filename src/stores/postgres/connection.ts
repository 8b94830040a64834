import type { PostgresClient } from "./client.js";
import { connect, isNoAddress, type Load, noAddress } from "./connect.js";
import type { Database, Row, Session, Statement } from "./database.js";
import { retrying } from "./failure.js";
import { migrate } from "./schema.js";

/** What a connection needs of its store. */
export interface ConnectionSettings {
  readonly client: PostgresClient;
  readonly schema: string;
  readonly prepare: boolean;
  readonly retryFor: number;
}

/**
 * The database of a store: opened, and brought to this version, when it is first used. What is asked of
 * it is asked again when the connection is lost, so it must do no harm a second time.
 */
export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #load: Load | undefined;
  #opening: Promise<Database> | undefined;
  #ready: Database | undefined;
  #retries = 0;

  constructor(settings: ConnectionSettings, load?: Load) {
    this.#settings = settings;
    this.#load = load;
  }

  /** How often something was tried again. */
  get retries(): number {
    return this.#retries;
  }

  query(text: Statement | string, params?: readonly unknown[]): Promise<Row[]> {
    return this.#with((database) => database.query(text, params));
  }

  transaction<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#with((database) => database.transaction(work));
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

  #with<T>(action: (database: Database) => Promise<T>): Promise<T> {
    return retrying(
      this.#settings.retryFor,
      async () => action(this.#ready ?? (await this.#open())),
      () => this.#retries++,
    );
  }

  #open(): Promise<Database> {
    if (this.#opening !== undefined) return this.#opening;
    const opening: Promise<Database> = this.#make().then(
      (database) => {
        if (this.#opening === opening) this.#ready = database;
        return database;
      },
      (error: unknown) => {
        if (this.#opening === opening) this.#opening = undefined;
        throw error;
      },
    );
    this.#opening = opening;
    return opening;
  }

  async #make(): Promise<Database> {
    const { client, prepare, schema } = this.#settings;
    const database = await connect(client, prepare, this.#load);
    try {
      await migrate(database, schema);
    } catch (error) {
      await database.close();
      throw isNoAddress(error) ? noAddress() : error;
    }
    return database;
  }
}
