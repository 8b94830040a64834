import type { Connection } from "./connection.js";
import { quoted } from "./schema.js";

/** What is known of a database. */
export interface DatabaseFacts {
  /** The version of Postgres. */
  readonly version: string;
  /** Whether waymark's tables are there. */
  readonly hasTables: boolean;
  /** Whether this user may save, or create the tables that are missing for it. */
  readonly canWrite: boolean;
  /** The size of the database. */
  readonly bytes: number;
}

/** What is known of a database; `undefined` if there is none. */
export async function factsOf(
  connection: Connection,
  schema: string,
): Promise<DatabaseFacts | undefined> {
  const row = await connection.inspect(
    `SELECT current_setting('server_version') AS version,
      pg_database_size(current_database()) AS bytes,
      to_regclass($1) IS NOT NULL AS made,
      CASE WHEN to_regclass($1) IS NULL
        THEN has_database_privilege(current_database(), 'CREATE')
        ELSE has_table_privilege(to_regclass($1)::oid, 'INSERT') END AS may`,
    [`${quoted(schema)}.checkpoints`],
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
