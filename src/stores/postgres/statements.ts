import { type Statement, statement } from "./database.js";
import { quoted } from "./schema.js";

/** What is written of a checkpoint, in the order of the parameters. */
export interface SaveRow {
  readonly runId: string;
  /** The sequence that the run must be at. */
  readonly expected: number;
  readonly sequence: number;
  /** The id of its newest checkpoint, which it must have; `""` for any. */
  readonly previous: string;
  readonly checkpointId: string;
  readonly parentId: string;
  readonly graph: string;
  readonly version: number;
  readonly status: string;
  readonly node: string;
  readonly step: number;
  readonly timestamp: string;
  readonly reason: string;
  /** The oldest sequence to keep. */
  readonly firstKept: number;
  /** The sequence of the snapshot it builds on; its own for a snapshot. */
  readonly base: number;
  readonly bytes: number;
  readonly body: string;
  /** The epoch that the run must be at, and for how many milliseconds its lease is then good; `null` for any. */
  readonly epoch: number | null;
  readonly ttl: number | null;
}

/** Each column of a save, with its type. */
const columns = {
  run_id: "text",
  expected: "bigint",
  sequence: "bigint",
  previous: "text",
  checkpoint_id: "text",
  parent_id: "text",
  graph: "text",
  version: "bigint",
  status: "text",
  node: "text",
  step: "bigint",
  timestamp: "text",
  reason: "text",
  first_kept: "bigint",
  base: "bigint",
  bytes: "bigint",
  body: "text",
  epoch: "bigint",
  ttl: "bigint",
} as const;

const inRun = [
  "sequence",
  "checkpoint_id",
  "graph",
  "version",
  "status",
  "node",
  "step",
  "timestamp",
] as const;
const inCheckpoint = [
  "sequence",
  "base",
  "checkpoint_id",
  "parent_id",
  "step",
  "node",
  "status",
  "timestamp",
  "reason",
  "bytes",
  "body",
] as const;

/** How many milliseconds from now, by the clock of the database. */
const fromNow = (ms: string): string => `clock_timestamp() + ${ms} * interval '1 millisecond'`;

/** The statements of a store. */
export interface Statements {
  /** Saves the first checkpoint of a run. */
  readonly start: Statement;
  /** Saves the next checkpoint of a run. */
  readonly save: Statement;
  /**
   * Saves the next checkpoints of several runs. Each parameter is an array, but for the bodies: they are
   * one after the other in one, so that nobody has to escape their quotes; where each begins is the last.
   */
  readonly saveAll: Statement;
  readonly where: Statement;
  readonly history: Statement;
  readonly quarantine: Statement;
  readonly trim: Statement;
  readonly list: Statement;
  /** Claims runs; this and the next two are for several, each parameter is an array. */
  readonly claim: Statement;
  readonly renew: Statement;
  readonly release: Statement;
  readonly lock: Statement;
  readonly empty: Statement;
  readonly removeCheckpoints: Statement;
  readonly removeRuns: Statement;
  readonly sweep: Statement;
}

/** The statements for the tables in a schema. */
export function statementsFor(name: string): Statements {
  const runs = `${quoted(name)}.runs`;
  const checkpoints = `${quoted(name)}.checkpoints`;
  const epochs = `${quoted(name)}.epochs`.replaceAll("'", "''");
  const names = Object.keys(columns) as (keyof typeof columns)[];
  const parameter = (column: keyof typeof columns): string =>
    `$${names.indexOf(column) + 1}::${columns[column]}`;
  const insert = `INSERT INTO ${checkpoints} (run, ${inCheckpoint.join(", ")})`;
  // The fence and the write are one: the row of the run is locked, and looked at again once it is.
  const fenced = (value: typeof parameter): string => `
    SET ${inRun.map((column) => `${column} = ${value(column)}`).join(", ")},
      first_kept = greatest(r.first_kept, ${value("first_kept")}),
      lease_until = CASE WHEN r.lease_until IS NULL OR ${value("epoch")} IS NULL THEN r.lease_until
        ELSE ${fromNow(value("ttl"))} END`;
  const fits = (value: typeof parameter): string => `
    r.run_id = ${value("run_id")} AND r.sequence = ${value("expected")}
      AND (${value("previous")} = '' OR r.checkpoint_id = ${value("previous")})
      AND (${value("epoch")} IS NULL OR r.epoch = ${value("epoch")})`;
  const given = (column: keyof typeof columns): string => `s.${column}`;
  const listed = names.filter((column) => column !== "body");
  const part = `convert_from(substring(bodies FROM at::integer FOR bytes::integer), 'UTF8')`;
  return mapped({
    start: `
      WITH run AS (
        INSERT INTO ${runs} AS r (run_id, first_kept, ${inRun.join(", ")})
        VALUES (${parameter("run_id")}, ${parameter("first_kept")}, ${inRun.map(parameter).join(", ")})
        ON CONFLICT (run_id) DO UPDATE ${fenced(parameter)} WHERE ${fits(parameter)}
        RETURNING id)
      ${insert} SELECT id, ${inCheckpoint.map(parameter).join(", ")} FROM run RETURNING checkpoint_id`,
    save: `
      WITH run AS (UPDATE ${runs} r ${fenced(parameter)} WHERE ${fits(parameter)} RETURNING id)
      ${insert} SELECT id, ${inCheckpoint.map(parameter).join(", ")} FROM run RETURNING checkpoint_id`,
    saveAll: `
      WITH whole AS MATERIALIZED (SELECT convert_to(${parameter("body")}, 'UTF8') AS bodies),
        s AS (SELECT * FROM unnest(${listed.map((column) => `${parameter(column)}[]`).join(", ")}, $${names.length + 1}::bigint[])
          AS s (${listed.join(", ")}, at)),
        run AS (UPDATE ${runs} r ${fenced(given)} FROM s WHERE ${fits(given)} RETURNING r.id, s.*)
      ${insert} SELECT id, ${inCheckpoint.map((column) => (column === "body" ? part : column)).join(", ")}
      FROM run CROSS JOIN whole RETURNING checkpoint_id`,
    where: `
      SELECT r.sequence, r.checkpoint_id, r.epoch, c.checkpoint_id AS found
      FROM ${runs} r LEFT JOIN ${checkpoints} c ON c.run = r.id AND c.sequence = $2
      WHERE r.run_id = $1`,
    history: `
      SELECT c.sequence, c.step, c.node, c.status, c.timestamp, c.checkpoint_id, c.parent_id, c.reason, c.bytes
      FROM ${runs} r JOIN ${checkpoints} c ON c.run = r.id AND c.sequence >= r.first_kept
      WHERE r.run_id = $1 AND NOT c.quarantined ORDER BY c.sequence DESC`,
    quarantine: `
      UPDATE ${checkpoints} c SET quarantined = true FROM ${runs} r
      WHERE r.run_id = $1 AND c.run = r.id AND c.sequence = $2 AND c.checkpoint_id = $3
      RETURNING c.sequence`,
    // What the oldest kept checkpoint builds on stays, however old it is.
    trim: `
      WITH needed AS (
          SELECT r.id, (SELECT k.base FROM ${checkpoints} k WHERE k.run = r.id AND k.sequence >= r.first_kept
            ORDER BY k.sequence LIMIT 1) AS base
          FROM ${runs} r WHERE r.run_id = ANY($1::text[])),
        dead AS (
          SELECT c.run, c.sequence FROM needed n JOIN ${checkpoints} c ON c.run = n.id AND c.sequence < n.base
          LIMIT $2)
      DELETE FROM ${checkpoints} c USING dead d WHERE c.run = d.run AND c.sequence = d.sequence
      RETURNING c.sequence`,
    list: `SELECT run_id FROM ${runs} WHERE status <> ''`,
    // The same owner asks again when it did not hear the answer. An epoch is never followed by a lower one.
    claim: `
      INSERT INTO ${runs} AS r (run_id, epoch, owner, lease_until)
      SELECT c.run_id, nextval('${epochs}'), c.owner, ${fromNow("c.ttl")}
      FROM unnest($1::text[], $2::text[], $3::bigint[]) AS c (run_id, owner, ttl) ORDER BY c.run_id
      ON CONFLICT (run_id) DO UPDATE
      SET epoch = EXCLUDED.epoch, owner = EXCLUDED.owner, lease_until = EXCLUDED.lease_until
      WHERE EXCLUDED.epoch > r.epoch
        AND (r.lease_until IS NULL OR r.lease_until <= clock_timestamp() OR r.owner = EXCLUDED.owner)
      RETURNING run_id, epoch`,
    // One that was released stays so, also when the release overtook this.
    renew: `
      UPDATE ${runs} r SET lease_until = ${fromNow("c.ttl")}
      FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS c (run_id, epoch, ttl)
      WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.lease_until IS NOT NULL RETURNING r.run_id`,
    // A run that nobody saved is then not there at all.
    release: `
      WITH c AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS c (run_id, epoch)),
        gone AS (
          DELETE FROM ${runs} r USING c
          WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.sequence = 0)
      UPDATE ${runs} r SET lease_until = NULL, owner = '' FROM c
      WHERE r.run_id = c.run_id AND r.epoch = c.epoch AND r.sequence > 0`,
    // In the order of the ids, so that two who remove the same runs don't wait for each other.
    lock: `
      SELECT r.run_id, r.id, r.sequence, r.epoch, r.lease_until > clock_timestamp() AS claimed FROM ${runs} r
      WHERE r.run_id = ANY($1::text[]) ORDER BY r.run_id FOR UPDATE`,
    empty: `
      UPDATE ${runs} SET sequence = 0, checkpoint_id = '', first_kept = 0, graph = '', version = 0,
        status = '', node = '', step = 0, "timestamp" = ''
      WHERE run_id = $1`,
    removeCheckpoints: `DELETE FROM ${checkpoints} WHERE run = ANY($1::bigint[])`,
    removeRuns: `DELETE FROM ${runs} WHERE run_id = ANY($1::text[])`,
    // Of those who claimed a run and died before they saved it.
    sweep: `
      DELETE FROM ${runs}
      WHERE status = '' AND (lease_until IS NULL OR lease_until <= clock_timestamp())`,
  });
}

/** The parameters of a save. */
export function parametersOf(row: SaveRow): unknown[] {
  return Object.values(toColumns(row));
}

/** The parameters of several saves. */
export function parametersOfAll(rows: readonly SaveRow[]): unknown[] {
  const all = rows.map(toColumns);
  const parameters = Object.keys(columns).map((column) =>
    column === "body"
      ? rows.map(({ body }) => body).join("")
      : arrayOf(all.map((values) => values[column as keyof typeof columns])),
  );
  const begins: number[] = [];
  let at = 1;
  for (const { bytes } of rows) {
    begins.push(at);
    at += bytes;
  }
  return [...parameters, arrayOf(begins)];
}

/** An array as Postgres reads it. Drivers differ in what they make of one, and take longer. */
export function arrayOf(values: readonly unknown[]): string {
  const items = values.map((value) => {
    if (value === null) return "NULL";
    return typeof value === "string" ? `"${value.replace(/["\\]/g, "\\$&")}"` : String(value);
  });
  return `{${items.join(",")}}`;
}

function toColumns(row: SaveRow): Record<keyof typeof columns, unknown> {
  return {
    run_id: row.runId,
    expected: row.expected,
    sequence: row.sequence,
    previous: row.previous,
    checkpoint_id: row.checkpointId,
    parent_id: row.parentId,
    graph: row.graph,
    version: row.version,
    status: row.status,
    node: row.node,
    step: row.step,
    timestamp: row.timestamp,
    reason: row.reason,
    first_kept: row.firstKept,
    base: row.base,
    bytes: row.bytes,
    body: row.body,
    epoch: row.epoch,
    ttl: row.ttl,
  };
}

function mapped(texts: Record<keyof Statements, string>): Statements {
  const entries = Object.entries(texts).map(([name, text]) => [name, statement(text)]);
  return Object.fromEntries(entries) as unknown as Statements;
}
