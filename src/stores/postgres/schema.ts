import { ConfigError, show } from "../../errors.js";
import type { Database, Session } from "./database.js";

/*
 * {schema}.runs         one row a run: where it is, who has claimed it
 * {schema}.checkpoints  one row a checkpoint
 * {schema}.migrations   which of the migrations below were done
 *
 * A row of runs is there from the first claim or save on; while nothing is saved its sequence is 0 and
 * its status "". Its id is another after a run was deleted and starts again.
 *
 * A checkpoint's body is a line of a journal: its header, what changed or all of it, and the SHA-256 of
 * both. It is text, byte by byte what was written: jsonb sorts keys and knows neither -0 nor the
 * character 0, and took half as long again to insert at 100 KB; json only checks what is known to be
 * right; bytea can't be read by a person. Who wants to look inside casts: body::json -> 'content'.
 *
 * Names and times compare byte by byte, as they do in JavaScript, whatever the locale of the server.
 */
const migrations: readonly ((schema: string) => readonly string[])[] = [
  (schema) => [
    `CREATE SEQUENCE ${schema}.epochs`,
    `CREATE TABLE ${schema}.runs (
      run_id text COLLATE "C" PRIMARY KEY,
      id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
      sequence bigint NOT NULL DEFAULT 0,
      checkpoint_id text COLLATE "C" NOT NULL DEFAULT '',
      first_kept bigint NOT NULL DEFAULT 0,
      graph text COLLATE "C" NOT NULL DEFAULT '',
      version bigint NOT NULL DEFAULT 0,
      status text COLLATE "C" NOT NULL DEFAULT '',
      node text COLLATE "C" NOT NULL DEFAULT '',
      step bigint NOT NULL DEFAULT 0,
      "timestamp" text COLLATE "C" NOT NULL DEFAULT '',
      epoch bigint NOT NULL DEFAULT 0,
      owner text COLLATE "C" NOT NULL DEFAULT '',
      lease_until timestamptz,
      created_at timestamptz NOT NULL DEFAULT now()
    )`,
    // Runs are listed status by status, so these two serve every filter.
    `CREATE INDEX runs_by_status ON ${schema}.runs (status, "timestamp", run_id)`,
    `CREATE INDEX runs_by_graph ON ${schema}.runs (graph, status, "timestamp", run_id)`,
    `CREATE TABLE ${schema}.checkpoints (
      run bigint NOT NULL,
      sequence bigint NOT NULL,
      base bigint NOT NULL,
      checkpoint_id text COLLATE "C" NOT NULL,
      parent_id text COLLATE "C" NOT NULL,
      step bigint NOT NULL,
      node text COLLATE "C" NOT NULL,
      status text COLLATE "C" NOT NULL,
      "timestamp" text COLLATE "C" NOT NULL,
      reason text COLLATE "C" NOT NULL,
      bytes bigint NOT NULL,
      quarantined boolean NOT NULL DEFAULT false,
      body text COLLATE "C" NOT NULL,
      PRIMARY KEY (run, sequence)
    )`,
  ],
];

/** A name as SQL takes it. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Brings the schema to this version. Of many processes that do so at once, one does it and the others
 * wait; when there is nothing to do, nothing is locked or written.
 *
 * @throws ConfigError when a newer version has made it.
 */
export async function migrate(database: Database, name: string): Promise<void> {
  if ((await versionOf(database, name)) === migrations.length) return;
  const schema = quoted(name);
  for (let version = 0; version < migrations.length; ) {
    version = await database.transaction(async (session) => {
      await session.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [
        `waymark ${name}`,
      ]);
      const found = await versionOf(session, name);
      const migration = migrations[found];
      if (migration === undefined) return found;
      if (found === 0) {
        // Only when it is missing: to ask for it takes a right that a role may lack on a schema of its own.
        const there = await session.query("SELECT FROM pg_namespace WHERE nspname = $1", [name]);
        if (there.length === 0) await session.query(`CREATE SCHEMA ${schema}`);
        await session.query(
          `CREATE TABLE IF NOT EXISTS ${schema}.migrations (version bigint PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`,
        );
      }
      for (const text of migration(schema)) await session.query(text);
      await session.query(`INSERT INTO ${schema}.migrations (version) VALUES ($1)`, [found + 1]);
      return found + 1;
    });
  }
}

async function versionOf(session: Session, name: string): Promise<number> {
  const table = `${quoted(name)}.migrations`;
  // Not to_regclass: what that does not find it does not find again in the same transaction.
  const there = await session.query(
    "SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'migrations'",
    [name],
  );
  if (there.length === 0) return 0;
  const [row] = await session.query(`SELECT max(version) AS version FROM ${table}`);
  const version = Number(row?.version ?? 0);
  if (version <= migrations.length) return version;
  throw new ConfigError(
    "PostgresStore.schema",
    `${show(name)} has tables of version ${version}: a newer waymark made them, this one knows up to ${migrations.length}`,
  );
}
