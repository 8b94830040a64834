/*
 * Texts are read as bytes: over bytes that are no UTF-8, as a damaged file may have, libsql ends the process.
 */

/** Columns of text, as they are read. */
function bytesOf(column: string, name = column): string {
  return `CAST(${column} AS BLOB) AS ${name}`;
}

const columns = ["sequence", "checkpoint_id", "graph", "status", "saved_at", "header"];
const assigned = columns.map((column) => `${column} = ?`).join(", ");
const taken = columns.map((column) => `${column} = excluded.${column}`).join(", ");
const inRun = "run = (SELECT id FROM runs WHERE run_id = ?)";

/** The records that one is made of, with the newest of its run. */
const chain = (target: string): string => `
  SELECT r.sequence AS head, ${bytesOf("r.checkpoint_id", "head_id")}, c.sequence,
    ${bytesOf("c.header", "header")}, ${bytesOf("c.content", "content")}, ${bytesOf("c.sha256", "sha256")}
  FROM runs r
  LEFT JOIN checkpoints t ON t.run = r.id AND t.sequence = (${target})
  LEFT JOIN checkpoints c ON c.run = t.run AND c.sequence BETWEEN t.base AND t.sequence AND c.aside = 0
  WHERE r.run_id = ? AND r.sequence > 0 ORDER BY c.sequence`;

/** The statements of a store. */
export const statements = {
  /** The first record of a run that this store has not claimed. */
  start: `
    INSERT INTO runs (${columns.join(", ")}, run_id) VALUES (${columns.map(() => "?").join(", ")}, ?)
    ON CONFLICT (run_id) DO UPDATE SET ${taken} WHERE runs.sequence = 0`,
  /** The fence: nothing is changed unless the run is where it must be. */
  advance: `
    UPDATE runs SET ${assigned}
    WHERE run_id = ? AND sequence = ? AND checkpoint_id = ifnull(?, checkpoint_id)
      AND epoch = ifnull(?, epoch)`,
  /** The same for a row that is known: to find it by its number takes half as long. */
  advanceRow: `
    UPDATE runs SET ${assigned}
    WHERE id = ? AND run_id = ? AND sequence = ? AND checkpoint_id = ifnull(?, checkpoint_id)
      AND epoch = ifnull(?, epoch)`,
  insert: `
    INSERT INTO checkpoints (run, sequence, base, bytes, checkpoint_id, header, sha256, content)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  id: "SELECT id FROM runs WHERE run_id = ?",
  run: `
    SELECT id, sequence, ${bytesOf("checkpoint_id")}, epoch, lease_until, ${bytesOf("owner")}
    FROM runs WHERE run_id = ?`,
  chainAt: chain(
    "SELECT k.sequence FROM checkpoints k WHERE k.run = r.id AND k.aside = 0 AND k.sequence = ?",
  ),
  chainBelow: chain(
    "SELECT k.sequence FROM checkpoints k WHERE k.run = r.id AND k.aside = 0 AND k.sequence < ? ORDER BY k.sequence DESC LIMIT 1",
  ),
  headers: `SELECT sequence, bytes, aside, ${bytesOf("header")} FROM checkpoints WHERE ${inRun} ORDER BY sequence DESC`,
  records: `
    SELECT sequence, ${bytesOf("header")}, ${bytesOf("content")}, ${bytesOf("sha256")} FROM checkpoints
    WHERE ${inRun} AND sequence BETWEEN ? AND ? AND aside = 0 ORDER BY sequence`,
  row: `SELECT rowid AS id FROM checkpoints WHERE ${inRun} AND sequence = ? AND aside = 0`,
  setAside: "UPDATE checkpoints SET aside = 1 WHERE rowid = ?",
  discard: `DELETE FROM checkpoints WHERE ${inRun} AND sequence IN (SELECT value FROM json_each(?))`,
  list: `SELECT ${bytesOf("run_id")} FROM runs WHERE sequence > 0`,
  find: `
    SELECT ${bytesOf("r.run_id", "run_id")} FROM checkpoints c JOIN runs r ON r.id = c.run
    WHERE c.checkpoint_id = ? AND c.aside = 0`,
  saveGraph: "INSERT INTO graphs (fingerprint, topology) VALUES (?, ?) ON CONFLICT DO NOTHING",
  graph: `SELECT ${bytesOf("topology")} FROM graphs WHERE fingerprint = ?`,
  removeRecords: "DELETE FROM checkpoints WHERE run = ?",
  removeRun: "DELETE FROM runs WHERE id = ?",
  /** Leaves a run with nothing but its claim. */
  empty: `
    UPDATE runs SET sequence = 0, checkpoint_id = '', graph = '', status = '', saved_at = '', header = ''
    WHERE id = ?`,
  /** Of those who claimed a run and died before they saved it. */
  sweep: "DELETE FROM runs WHERE status = '' AND sequence = 0 AND lease_until <= ?",
  nextEpoch: "UPDATE epochs SET last = last + 1 RETURNING last",
  claim: `
    INSERT INTO runs (run_id, epoch, owner, lease_until) VALUES (?, ?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE
    SET epoch = excluded.epoch, owner = excluded.owner, lease_until = excluded.lease_until`,
  /** One that was released stays so. */
  renew: "UPDATE runs SET lease_until = ? WHERE run_id = ? AND epoch = ? AND lease_until > 0",
  release: "UPDATE runs SET lease_until = 0 WHERE run_id = ? AND epoch = ?",
  /** A run that nobody saved is then not there at all. */
  forget: "DELETE FROM runs WHERE run_id = ? AND epoch = ? AND sequence = 0",
} as const;
