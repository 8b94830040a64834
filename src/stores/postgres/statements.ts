import type { After, NewRecord } from "../../checkpoint/records/backend.js";
import type { Metadata } from "../../state/metadata.js";
import type { Lease } from "../leases.js";
import { prepared, recordColumns, runColumns, type SqlValue } from "../sql/backend.js";
import { idColumn, toColumn } from "../sql/text.js";
import { quoted } from "./schema.js";

/** A checkpoint to write, and where its run must be. */
export interface Save {
  readonly runId: string;
  readonly after: After;
  readonly record: NewRecord;
  /** The epoch that the run must be at, and how long its lease then lasts; any if absent. */
  readonly lease: Lease | undefined;
}

/** Metadata for a searchable column, which is never read back. */
export function toJsonb(metadata: Metadata): string {
  const entries = Object.entries(metadata).map(([key, value]) => [
    toColumn(key),
    typeof value === "string" ? toColumn(value) : value,
  ]);
  return JSON.stringify(Object.fromEntries(entries));
}

/** Each column of a save, in the order of the parameters: its type and its value. */
const columns = {
  run_id: ["text", ({ runId }) => runId],
  expected: ["bigint", ({ after }) => after.sequence],
  previous: [
    "text",
    ({ after: { checkpointId } }) => (checkpointId === undefined ? null : toColumn(checkpointId)),
  ],
  epoch: ["bigint", ({ lease }) => lease?.epoch ?? null],
  ttl: ["bigint", ({ lease }) => lease?.ttl ?? null],
  sequence: ["bigint", ({ record }) => record.sequence],
  base: ["bigint", ({ record }) => record.base],
  bytes: ["bigint", ({ record }) => record.bytes],
  checkpoint_id: ["text", ({ record }) => toColumn(record.fields.checkpointId)],
  graph: ["text", ({ record }) => toColumn(record.fields.graph)],
  status: ["text", ({ record }) => record.fields.status],
  saved_at: ["text", ({ record }) => toColumn(record.fields.savedAt)],
  metadata: [
    "jsonb",
    ({ record: { fields } }) => (fields.metadata === undefined ? null : toJsonb(fields.metadata)),
  ],
  sha256: ["text", ({ record }) => record.sha256],
  header: ["text", ({ record }) => record.header],
  content: ["text", ({ record }) => record.content],
} satisfies Record<string, readonly [type: string, value: (save: Save) => SqlValue]>;

type Column = keyof typeof columns;

const names = Object.keys(columns) as Column[];
/** The columns that become arrays when several rows are saved; the other two are slices of one long text. */
const listed = names.filter((column) => column !== "header" && column !== "content");

const inRun: readonly Column[] = [...runColumns, "metadata"];

/** How many milliseconds from now, by the clock of the database. */
const fromNow = (ms: string): string => `clock_timestamp() + ${ms} * interval '1 millisecond'`;

/** The statements of a store. */
export type Statements = ReturnType<typeof statementsFor>;

/** The statements for the tables in a schema. */
export function statementsFor(name: string) {
  const runs = `${quoted(name)}.runs`;
  const checkpoints = `${quoted(name)}.checkpoints`;
  const epochs = `${quoted(name)}.epochs`.replaceAll("'", "''");
  const parameter = (column: Column): string =>
    `$${names.indexOf(column) + 1}::${columns[column][0]}`;
  const insert = `INSERT INTO ${checkpoints} (run, ${recordColumns.join(", ")})`;
  // Fencing and writing are one statement: the run's row is locked, and its conditions are checked again once it
  // is.
  const moved = (value: typeof parameter): string => `
    SET ${inRun.map((column) => `${column} = ${value(column)}`).join(", ")},
      lease_until = CASE WHEN r.lease_until IS NULL OR ${value("epoch")} IS NULL THEN r.lease_until
        ELSE ${fromNow(value("ttl"))} END`;
  const fits = (value: typeof parameter): string => `
    r.run_id = ${value("run_id")} AND r.sequence = ${value("expected")}
      AND (${value("previous")} IS NULL OR r.checkpoint_id = ${value("previous")})
      AND (${value("epoch")} IS NULL OR r.epoch = ${value("epoch")})`;
  const given = (column: Column): string => `s.${column}`;
  const runId = `${idColumn("r.run_id")} AS run_id`;
  const found = `
    SELECT ${runId}, r.id, r.sequence, r.epoch, r.owner, r.lease_until > clock_timestamp() AS claimed
    FROM ${runs} r WHERE r.run_id = ANY($1::text[]) ORDER BY r.run_id`;
  return prepared({
    /** Saves the first checkpoint of a run. */
    start: `
      WITH run AS (
        INSERT INTO ${runs} AS r (run_id, ${inRun.join(", ")})
        VALUES (${parameter("run_id")}, ${inRun.map(parameter).join(", ")})
        ON CONFLICT (run_id) DO UPDATE ${moved(parameter)} WHERE ${fits(parameter)}
        RETURNING id)
      ${insert} SELECT id, ${recordColumns.map(parameter).join(", ")} FROM run RETURNING run`,
    /** Saves the next checkpoint of a run. */
    save: `
      WITH run AS (UPDATE ${runs} r ${moved(parameter)} WHERE ${fits(parameter)} RETURNING id)
      ${insert} SELECT id, ${recordColumns.map(parameter).join(", ")} FROM run RETURNING run`,
    /**
     * Saves the next checkpoints of several runs. Each parameter is an array, except headers and
     * contents: these are concatenated into one text, so that their quotes need no escaping.
     */
    saveAll: `
      WITH whole AS MATERIALIZED (SELECT convert_to($${listed.length + 1}::text, 'UTF8') AS texts),
        given AS (SELECT * FROM unnest(${listed.map((column, index) => `$${index + 1}::${columns[column][0]}[]`).join(", ")},
            $${listed.length + 2}::integer[], $${listed.length + 3}::integer[])
          AS given (${listed.join(", ")}, starts, splits)),
        s AS (SELECT given.*,
            convert_from(substring(texts FROM starts FOR splits), 'UTF8') AS header,
            convert_from(substring(texts FROM starts + splits FOR bytes::integer - splits), 'UTF8') AS content
          FROM given CROSS JOIN whole),
        run AS (UPDATE ${runs} r ${moved(given)} FROM s WHERE ${fits(given)} RETURNING r.id, s.*)
      ${insert} SELECT id, ${recordColumns.join(", ")} FROM run RETURNING run, checkpoint_id`,
    head: `SELECT sequence, checkpoint_id, epoch, owner FROM ${runs} WHERE run_id = $1`,
    discard: `
      DELETE FROM ${checkpoints} c
      USING unnest($1::bigint[], $2::bigint[]) AS d (run, sequence)
      WHERE c.run = d.run AND c.sequence = d.sequence`,
    /**
     * Claims runs. This and the next two take arrays, for several runs. The same owner may claim again if the
     * response was lost. Epochs never decrease.
     */
    claim: `
      INSERT INTO ${runs} AS r (run_id, epoch, owner, lease_until)
      SELECT c.run_id, nextval('${epochs}'), c.owner, ${fromNow("c.ttl")}
      FROM unnest($1::text[], $2::text[], $3::bigint[]) AS c (run_id, owner, ttl) ORDER BY c.run_id
      ON CONFLICT (run_id) DO UPDATE
      SET epoch = EXCLUDED.epoch, owner = EXCLUDED.owner, lease_until = EXCLUDED.lease_until
      WHERE EXCLUDED.epoch > r.epoch
        AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp() OR r.owner = EXCLUDED.owner)
      RETURNING ${runId}, epoch`,
    /** A released lease stays released, even if the release overtook this renewal. */
    renew: `
      UPDATE ${runs} r SET lease_until = ${fromNow("c.ttl")}
      FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (run_id, epoch, ttl)
      WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.lease_until IS NOT NULL RETURNING ${runId}`,
    /** A run that was never saved is removed entirely. */
    release: `
      WITH c AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS c (run_id, epoch)),
        gone AS (
          DELETE FROM ${runs} r USING c
          WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.sequence = 0)
      UPDATE ${runs} r SET lease_until = NULL FROM c
      WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.sequence > 0`,
    /** Ends the lease of a dead owner. */
    evict: `UPDATE ${runs} SET lease_until = NULL WHERE run_id = $1 AND owner = $2`,
    holder: `SELECT owner FROM ${runs} WHERE run_id = $1 AND lease_until > clock_timestamp()`,
    look: found,
    /** In the order of ids, so that two processes that remove the same runs don't deadlock. */
    lock: `${found} FOR UPDATE`,
    removeCheckpoints: `DELETE FROM ${checkpoints} WHERE run = ANY($1::bigint[])`,
    removeRuns: `DELETE FROM ${runs} WHERE run_id = ANY($1::text[])`,
    /** Removes everything of a run except its claim. */
    emptyRuns: `
      UPDATE ${runs} SET id = DEFAULT, sequence = 0, checkpoint_id = '', graph = '', status = '',
        saved_at = '', header = '', metadata = NULL
      WHERE run_id = ANY($1::text[])`,
    /** Removes the rows of runs that were claimed by a process that died before saving them. */
    sweep: `
      DELETE FROM ${runs}
      WHERE status = '' AND (lease_until IS NULL OR lease_until <= clock_timestamp())`,
  });
}

/** The parameters of a save. */
export function parametersOf(save: Save): SqlValue[] {
  return names.map((column) => columns[column][1](save));
}

/** The parameters of several saves. */
export function parametersOfAll(saves: readonly Save[]): SqlValue[] {
  const starts: number[] = [];
  const splits: number[] = [];
  let texts = "";
  let at = 1;
  for (const { header, content, bytes } of saves.map(({ record }) => record)) {
    texts += header + content;
    starts.push(at);
    splits.push(Buffer.byteLength(header));
    at += bytes;
  }
  const lists = listed.map((column) => arrayOf(saves.map((save) => columns[column][1](save))));
  return [...lists, texts, arrayOf(starts), arrayOf(splits)];
}

/** An array literal of Postgres. Drivers encode arrays differently, and more slowly. */
export function arrayOf(values: readonly unknown[]): string {
  const items = values.map((value) => {
    if (value === null) return "NULL";
    return typeof value === "string" ? `"${value.replace(/["\\]/g, "\\$&")}"` : String(value);
  });
  return `{${items.join(",")}}`;
}
