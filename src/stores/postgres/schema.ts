import { ConfigError, show } from "../../errors.js";
import type { Database, Session } from "./database.js";

/*
 * {schema}.runs         one row per run: its position, its newest header, its claim
 * {schema}.checkpoints  one row per checkpoint
 * {schema}.graphs       one row per graph: its topology, by fingerprint
 * {schema}.migrations   which of the migrations below have been applied
 *
 * A run has a row from its first claim or save on; until something is saved, its sequence is 0 and its
 * status "". A run that is deleted and starts again gets a new id.
 *
 * Header and content are text, stored byte for byte: jsonb sorts keys, supports neither -0 nor the null
 * character, and took 1.5 times as long to insert at 100 KB; json would only check what is known to be
 * valid; bytea is unreadable. To look inside, cast: content::json.
 *
 * Names and times are compared byte by byte, as in JavaScript, whatever the locale of the server.
 */
const migrations: readonly ((schema: string) => readonly string[])[] = [
  (schema) => [
    `CREATE SEQUENCE ${schema}.epochs`,
    `CREATE TABLE ${schema}.runs (
      run_id text COLLATE "C" PRIMARY KEY,
      id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
      sequence bigint NOT NULL DEFAULT 0,
      checkpoint_id text COLLATE "C" NOT NULL DEFAULT '',
      graph text COLLATE "C" NOT NULL DEFAULT '',
      status text COLLATE "C" NOT NULL DEFAULT '',
      saved_at text COLLATE "C" NOT NULL DEFAULT '',
      header text NOT NULL DEFAULT '',
      metadata jsonb,
      epoch bigint NOT NULL DEFAULT 0,
      owner text NOT NULL DEFAULT '',
      lease_until timestamptz
    )`,
    // Runs are listed status by status, so these two serve every filter except metadata.
    `CREATE INDEX runs_by_status ON ${schema}.runs (status, saved_at, run_id)`,
    `CREATE INDEX runs_by_graph ON ${schema}.runs (graph, status, saved_at, run_id)`,
    `CREATE INDEX runs_by_metadata ON ${schema}.runs USING gin (metadata jsonb_path_ops)
      WHERE metadata IS NOT NULL`,
    `CREATE TABLE ${schema}.checkpoints (
      run bigint NOT NULL,
      sequence bigint NOT NULL,
      base bigint NOT NULL,
      bytes bigint NOT NULL,
      aside smallint NOT NULL DEFAULT 0,
      checkpoint_id text COLLATE "C" NOT NULL,
      sha256 text COLLATE "C" NOT NULL,
      header text NOT NULL,
      content text NOT NULL,
      PRIMARY KEY (run, sequence)
    )`,
    `CREATE INDEX checkpoints_by_id ON ${schema}.checkpoints (checkpoint_id)`,
    `CREATE TABLE ${schema}.graphs (fingerprint text COLLATE "C" PRIMARY KEY, topology text NOT NULL)`,
  ],
];

/** A quoted SQL identifier. */
export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Migrates the schema to this version. If several processes do so at once, one migrates and the others wait; if
 * there is nothing to do, nothing is locked or written.
 *
 * @throws ConfigError if a newer version created it.
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
        // Only if it is missing: CREATE SCHEMA IF NOT EXISTS needs a privilege that the owner of the schema may
        // lack.
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

/**
 * The version of the tables in a schema; 0 if there are none.
 *
 * @throws ConfigError if a newer version created them.
 */
export async function versionOf(session: Session, name: string): Promise<number> {
  const table = `${quoted(name)}.migrations`;
  // Not to_regclass: a table that it misses once, it misses for the rest of the transaction.
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
    `${show(name)} has tables of version ${version}, which a newer waymark made; this one knows versions up to ${migrations.length}`,
  );
}
