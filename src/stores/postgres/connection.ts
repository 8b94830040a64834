import { failures } from "../postgres-failure.js";
import { ServerConnection } from "../server.js";
import type { SqlRow, Statement } from "../sql/backend.js";
import { type ConnectionSettings, connect, withoutAddress } from "./connect.js";
import type { Database, Session } from "./database.js";
import { migrate, versionOf } from "./schema.js";

/** The database of a store, migrated when it is opened; `undefined` without tables, if none may be created. */
export class Connection extends ServerConnection<Database | undefined, ConnectionSettings> {
  protected readonly store = "PostgresStore";
  protected readonly failures = failures;

  /** Runs a statement that only reads. Without tables it returns no rows. */
  read(text: Statement | string, params?: readonly unknown[]): Promise<SqlRow[]> {
    return this.with(async (database) => database?.query(text, params) ?? []);
  }

  /** Runs a statement that writes. */
  async write(text: Statement, params: readonly unknown[]): Promise<SqlRow[]> {
    this.checkWritable();
    return this.read(text, params);
  }

  /** Runs several statements, all or none of them. */
  async transaction(work: (session: Session) => Promise<void>): Promise<void> {
    this.checkWritable();
    await this.with(async (database) => database?.transaction(work));
  }

  /** Queries the database itself, whether it has tables or not; `undefined` if there is no database. */
  async inspect(text: string, params: readonly unknown[]): Promise<SqlRow | undefined> {
    // A folder can be open only once.
    const open = this.connected;
    const database = open ?? (await connect(this.settings));
    try {
      return (await database?.query(text, params))?.[0];
    } finally {
      if (open === undefined) await database?.close();
    }
  }

  protected async connect(): Promise<Database | undefined> {
    const { schema, readOnly } = this.settings;
    const database = await connect(this.settings);
    if (database === undefined) return undefined;
    try {
      if (!readOnly) await migrate(database, schema);
      else if ((await versionOf(database, schema)) === 0) {
        await database.close();
        return undefined;
      }
    } catch (error) {
      await database.close();
      throw withoutAddress(error);
    }
    return database;
  }

  protected disconnect(database: Database): Promise<void> {
    return database.close();
  }
}
