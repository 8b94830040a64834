import { ConfigError } from "../../errors.js";
import type { Connection } from "./connection.js";
import { damaged } from "./failure.js";

/*
 * runs         one row per run: its head, its newest header, its claim
 * checkpoints  one row per record, in the order in which they were written
 * graphs       one row per graph: its topology by its fingerprint
 * epochs       one row: the highest epoch of any claim, so that none is ever reused
 *
 * A run has a row from its first claim or save on; until something is saved, its sequence is 0 and its
 * status "". Headers and contents are JSON text, exactly as hashed: `SELECT header ->> 'node' FROM runs`.
 * The content is the last column, so that reading headers does not read its overflow pages.
 */
const migrations: readonly string[] = [
  `
  CREATE TABLE runs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,
    checkpoint_id TEXT NOT NULL DEFAULT '',
    epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL DEFAULT '',
    graph TEXT NOT NULL DEFAULT '',
    status TEXT NOT NULL DEFAULT '',
    saved_at TEXT NOT NULL DEFAULT '',
    header TEXT NOT NULL DEFAULT ''
  );
  CREATE INDEX runs_by_status ON runs (status, saved_at, run_id);
  CREATE INDEX runs_by_graph ON runs (graph, status, saved_at, run_id);
  CREATE TABLE checkpoints (
    run INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    base INTEGER NOT NULL,
    aside INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    checkpoint_id TEXT NOT NULL,
    header TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    content TEXT NOT NULL
  );
  CREATE UNIQUE INDEX checkpoints_by_run ON checkpoints (run, sequence);
  CREATE INDEX checkpoints_by_id ON checkpoints (checkpoint_id);
  CREATE TABLE graphs (fingerprint TEXT PRIMARY KEY, topology TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE epochs (last INTEGER NOT NULL);
  INSERT INTO epochs VALUES (0);
  `,
];

/** "wymk", in the header of every waymark database. */
export const APPLICATION_ID = 0x77796d6b;

/**
 * One statement, so that the three values are consistent while another process creates the tables. Litestream
 * creates two tables of its own in an empty database.
 */
const SIGNATURE = `
  SELECT application_id AS application, user_version AS version,
    (SELECT count(*) FROM sqlite_schema WHERE tbl_name NOT GLOB '_litestream_*') AS tables
  FROM pragma_application_id, pragma_user_version`;

/**
 * Whether the tables exist.
 *
 * @throws ConfigError if a newer version made them.
 * @throws CheckpointCorruptionError if it is another application's database.
 */
export function hasTables(connection: Connection): boolean {
  // Both were set together with the tables, and reading them takes a tenth of the time of the full query.
  const isOurs = connection.pragma("application_id") === APPLICATION_ID;
  if (isOurs && connection.pragma("user_version") === migrations.length) return true;
  const found = connection.get(SIGNATURE) ?? {};
  const { application, tables } = found;
  const version = Number(found.version);
  if ([application, version, tables].every((one) => Number(one) === 0)) return false;
  if (Number(application) !== APPLICATION_ID) {
    throw damaged(connection.place, "a SQLite database of another application");
  }
  if (version < 1) throw damaged(connection.place, "a database with an unknown version");
  if (version <= migrations.length) return version === migrations.length;
  throw new ConfigError(
    "SqliteStore.path",
    `must be a database of a version up to ${migrations.length}; ${connection.place} has version ${version}, which a newer waymark made`,
  );
}

/** Creates the tables. If several processes try at once, one succeeds. */
export function makeTables(connection: Connection): void {
  connection.exec("BEGIN");
  try {
    // This starts the write transaction, and only an empty database accepts it. Outside the transaction,
    // another process could see a database without waymark's signature and take it for another application's.
    connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
    if (!hasTables(connection)) {
      const version = Number(connection.pragma("user_version"));
      for (const migration of migrations.slice(version)) connection.exec(migration);
      connection.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
      connection.exec(`PRAGMA user_version = ${migrations.length}`);
    }
    connection.exec("COMMIT");
  } catch (error) {
    connection.rollback();
    throw error;
  }
}
