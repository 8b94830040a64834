import { runColumns as columns, recordColumns } from "../sql/backend.js";

const assigned = columns.map((column) => `${column} = ?`).join(", ");
const taken = columns.map((column) => `${column} = excluded.${column}`).join(", ");
const inRun = "run = (SELECT id FROM runs WHERE run_id = ?)";

/** The statements of a store. */
export const statements = {
  /** The first record of a run that this store has not claimed. */
  start: `
    INSERT INTO runs (${columns.join(", ")}, run_id) VALUES (${columns.map(() => "?").join(", ")}, ?)
    ON CONFLICT (run_id) DO UPDATE SET ${taken} WHERE runs.sequence = 0`,
  /** The fence: nothing is changed unless the run is at the expected sequence, checkpoint and epoch. */
  advance: `
    UPDATE runs SET ${assigned}
    WHERE run_id = ? AND sequence = ? AND checkpoint_id = ifnull(?, checkpoint_id)
      AND epoch = ifnull(?, epoch)`,
  /** The same for a known row: finding it by its id takes half as long. */
  advanceRow: `
    UPDATE runs SET ${assigned}
    WHERE id = ? AND run_id = ? AND sequence = ? AND checkpoint_id = ifnull(?, checkpoint_id)
      AND epoch = ifnull(?, epoch)`,
  insert: `
    INSERT INTO checkpoints (run, ${recordColumns.join(", ")})
    VALUES (?, ${recordColumns.map(() => "?").join(", ")})`,
  run: `
    SELECT id, sequence, CAST(checkpoint_id AS BLOB) AS checkpoint_id, epoch, lease_until,
      CAST(owner AS BLOB) AS owner
    FROM runs WHERE run_id = ?`,
  discard: `DELETE FROM checkpoints WHERE ${inRun} AND sequence IN (SELECT value FROM json_each(?))`,
  removeRecords: "DELETE FROM checkpoints WHERE run = ?",
  removeRun: "DELETE FROM runs WHERE id = ?",
  /** Leaves nothing of a run but its claim. */
  empty: `
    UPDATE runs SET sequence = 0, checkpoint_id = '', graph = '', status = '', saved_at = '', header = ''
    WHERE id = ?`,
  /** Removes the rows of processes that claimed a run and died before they saved it. */
  sweep: "DELETE FROM runs WHERE status = '' AND sequence = 0 AND lease_until <= ?",
  nextEpoch: "UPDATE epochs SET last = last + 1 RETURNING last",
  claim: `
    INSERT INTO runs (run_id, epoch, owner, lease_until) VALUES (?, ?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE
    SET epoch = excluded.epoch, owner = excluded.owner, lease_until = excluded.lease_until`,
  /** A released claim stays released. */
  renew: "UPDATE runs SET lease_until = ? WHERE run_id = ? AND epoch = ? AND lease_until > 0",
  release: "UPDATE runs SET lease_until = 0 WHERE run_id = ? AND epoch = ?",
  /** Removes the row of a run that was never saved. */
  forget: "DELETE FROM runs WHERE run_id = ? AND epoch = ? AND sequence = 0",
} as const;
