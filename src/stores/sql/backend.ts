import { createHash } from "node:crypto";
import {
  type Chain,
  claimLost,
  type Head,
  type HeaderEntry,
  type RecordAt,
  type RunEntry,
  runEntryOf,
  type StoredRecord,
  unreadableRun,
} from "../../checkpoint/records/backend.js";
import { parseHeader } from "../../checkpoint/records/header.js";
import type { Claim, ClaimHolder, RunFilter } from "../../checkpoint/store.js";
import { show } from "../../errors.js";
import type { Metadata } from "../../state/metadata.js";
import { type RunStatus, statuses } from "../../state/record.js";
import { holderOf, type Leases } from "../leases.js";
import { fromColumn, idColumn, runIdIn, textOf, toColumn } from "./text.js";

/** A row, by the names of its columns. */
export type SqlRow = Readonly<Record<string, unknown>>;

/** What differs between the databases. */
export interface SqlDialect {
  /** A table's name as written in a statement. */
  readonly table: (name: string) => string;
  /** The expression that selects a text column, perhaps as bytes. */
  readonly text: (column: string) => string;
  /** The placeholder of the parameter at this position, from 1: `?`, `$1`. */
  readonly placeholder: (place: number) => string;
  /** The conditions that a run has this metadata. */
  metadata(metadata: Metadata, parameter: (value: string | number) => string): readonly string[];
  /** Metadata as written in the indexed column; absent if there is no such column. */
  readonly metadataColumn?: (metadata: Metadata) => string;
}

/** A statement that is used repeatedly, and the name to prepare it under. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/** A parameter of a statement. */
export type SqlValue = string | number | null;

/** Runs statements. */
export interface SqlRunner {
  /** The rows of a statement that only reads; none if the tables do not exist yet. */
  read(statement: Statement | string, params: readonly SqlValue[]): Promise<readonly SqlRow[]>;
  /** Runs a statement that writes. */
  write(statement: Statement, params: readonly SqlValue[]): Promise<readonly SqlRow[]>;
}

/** The columns that a save sets in the row of its run. */
export const runColumns = [
  "sequence",
  "checkpoint_id",
  "graph",
  "status",
  "saved_at",
  "header",
] as const;

/** The columns of a checkpoint, besides its run. The content is last, after what is read without it. */
export const recordColumns = [
  "sequence",
  "base",
  "bytes",
  "checkpoint_id",
  "header",
  "sha256",
  "content",
] as const;

/** Statements with names derived from their text, so that other table names give other names. */
export function prepared<K extends string>(
  texts: Record<K, string>,
): Readonly<Record<K, Statement>> {
  const entries = Object.entries<string>(texts).map(([key, text]) => {
    const hash = createHash("sha256").update(text).digest("hex");
    return [key, { name: `waymark_${hash.slice(0, 32)}`, text }];
  });
  return Object.fromEntries(entries) as Record<K, Statement>;
}

/** The statements of {@link SqlBackend}. */
export function statementsOf({ table, text, placeholder, metadataColumn }: SqlDialect) {
  const [runs, checkpoints, graphs] = [table("runs"), table("checkpoints"), table("graphs")];
  const [first, second, third] = [placeholder(1), placeholder(2), placeholder(3)];
  const texts = (...columns: string[]): string =>
    columns.map((one) => `${text(one)} AS ${one.replace(/^.\./, "")}`).join(", ");
  const inRun = `FROM ${runs} r JOIN ${checkpoints} c ON c.run = r.id WHERE r.run_id = ${first}`;
  const listed = ["graph", "status", "saved_at", ...(metadataColumn ? ["metadata"] : [])];
  const next = listed.length + 1;
  return prepared({
    /** The newest record between two sequences, preceded by all records that it builds on; and the run's head. */
    chain: `
      SELECT r.sequence AS head, ${text("r.checkpoint_id")} AS head_id, c.sequence,
        ${texts("c.header", "c.content", "c.sha256")}
      FROM (SELECT id, sequence, checkpoint_id FROM ${runs} WHERE run_id = ${first} AND sequence > 0) r
      LEFT JOIN ${checkpoints} t ON t.run = r.id AND t.sequence = (
        SELECT max(k.sequence) FROM ${checkpoints} k
        WHERE k.run = r.id AND k.sequence BETWEEN ${second} AND ${third} AND k.aside = 0)
      LEFT JOIN ${checkpoints} c
        ON c.run = t.run AND c.sequence BETWEEN t.base AND t.sequence AND c.aside = 0
      ORDER BY c.sequence`,
    headers: `
      SELECT c.sequence, c.bytes, c.aside, ${texts("c.header")} ${inRun} ORDER BY c.sequence DESC`,
    records: `
      SELECT c.sequence, ${texts("c.header", "c.content", "c.sha256")} ${inRun}
        AND c.sequence BETWEEN ${second} AND ${third} AND c.aside = 0 ORDER BY c.sequence`,
    list: `SELECT ${text(idColumn("run_id"))} AS run_id FROM ${runs} WHERE sequence > 0`,
    find: `SELECT ${texts("header")} FROM ${checkpoints} WHERE checkpoint_id = ${first} AND aside = 0 LIMIT 1`,
    identify: `SELECT id, sequence FROM ${runs} WHERE run_id = ${first}`,
    /** Lists a run from an older record, unless it was saved to meanwhile. The run's sequence stays. */
    relist: `
      UPDATE ${runs} AS r SET ${listed.map((column, at) => `${column} = ${placeholder(at + 1)}`).join(", ")},
        header = coalesce((SELECT c.header FROM ${checkpoints} c
          WHERE c.run = r.id AND c.sequence = ${placeholder(next)}), r.header)
      WHERE r.id = ${placeholder(next + 1)} AND r.sequence = ${placeholder(next + 2)} RETURNING id`,
    setAside: `
      UPDATE ${checkpoints} SET aside = 1 WHERE run = ${first} AND sequence = ${second} RETURNING sequence`,
    saveGraph: `
      INSERT INTO ${graphs} (fingerprint, topology) VALUES (${first}, ${second}) ON CONFLICT DO NOTHING
      RETURNING fingerprint`,
    graph: `SELECT ${texts("topology")} FROM ${graphs} WHERE fingerprint = ${first}`,
  });
}

const TEXTS = ["run_id", "graph", "status", "saved_at", "header"];
const COLUMNS = ["sequence", ...TEXTS].join(", ");

/**
 * Finds runs, newest save first; `undefined` if no run can match. Each status is a separate subquery in the
 * order of an index on `(status, saved_at, run_id)` or `(graph, status, saved_at, run_id)`, and the database
 * merges them, so a page costs the same at any position and for any filter by these columns.
 */
function runsQuery(
  filter: RunFilter,
  dialect: SqlDialect,
): { readonly text: string; readonly params: (string | number)[] } | undefined {
  const { runId, status = statuses, graph, before, metadata = {}, cursor, limit } = filter;
  const wanted = [...new Set([status].flat())];
  if (wanted.length === 0 || limit === 0) return undefined;
  const params: (string | number)[] = [];
  const parameter = (value: string | number): string => dialect.placeholder(params.push(value));
  const most = (): string => (limit === undefined ? "" : `LIMIT ${parameter(limit)}`);
  const end = before && new Date(before).toISOString();
  const isByMetadata = dialect.metadataColumn !== undefined && Object.keys(metadata).length > 0;
  const part = (some: readonly RunStatus[]): string => {
    const conditions = [`status IN (${some.map(parameter).join(", ")})`];
    if (runId !== undefined) conditions.push(`run_id = ${parameter(runId)}`);
    if (graph !== undefined) conditions.push(`graph = ${parameter(toColumn(graph))}`);
    // Given two bounds, a database may start at the wider one and read everything in between.
    if (end !== undefined && !(cursor && cursor.savedAt < end)) {
      conditions.push(`saved_at < ${parameter(end)}`);
    } else if (cursor !== undefined) {
      const place = `${parameter(toColumn(cursor.savedAt))}, ${parameter(cursor.runId)}`;
      conditions.push(`(saved_at, run_id) < (${place})`);
    }
    conditions.push(...dialect.metadata(metadata, parameter));
    return `SELECT ${COLUMNS} FROM ${dialect.table("runs")} WHERE ${conditions.join(" AND ")} ORDER BY saved_at DESC, run_id DESC ${most()}`;
  };
  // A filter by metadata uses that index, once, and then sorts.
  const groups = isByMetadata ? [wanted] : wanted.map((one) => [one]);
  const parts = groups.map((some) => `SELECT * FROM (${part(some)}) AS ${some[0]}`);
  const texts = TEXTS.map((name) => `${dialect.text(name)} AS ${name}`);
  const columns = ["sequence", ...texts].join(", ");
  const order = "ORDER BY found.saved_at DESC, found.run_id DESC";
  const text = `SELECT ${columns} FROM (${parts.join(" UNION ALL ")}) AS found ${order} ${most()}`;
  return { text, params };
}

/** For how many runs to remember the row. */
const KNOWN_ROWS = 10_000;

/** What the SQL backends have in common: the same tables and the statements that read them. */
export abstract class SqlBackend {
  abstract readonly place: string;
  protected abstract readonly leases: Leases;
  /** The rows of runs that were saved to. A run that is deleted and starts again gets another row. */
  protected readonly rows = new Map<string, number>();
  readonly #sql: SqlRunner;
  readonly #dialect: SqlDialect;
  readonly #statements: ReturnType<typeof statementsOf>;

  constructor(sql: SqlRunner, dialect: SqlDialect, statements = statementsOf(dialect)) {
    this.#sql = sql;
    this.#dialect = dialect;
    this.#statements = statements;
  }

  async chain(runId: string, at: RecordAt): Promise<Chain | undefined> {
    const [from, to] = "below" in at ? [0, at.below - 1] : [at.sequence, at.sequence];
    const last = Math.min(to, Number.MAX_SAFE_INTEGER);
    const rows = await this.#sql.read(this.#statements.chain, [runId, from, last]);
    const [first] = rows;
    if (first === undefined) return undefined;
    const head = headOf({ sequence: first.head, checkpoint_id: first.head_id }, undefined);
    return { head, records: first.sequence === null ? [] : rows.map(recordOf) };
  }

  async headers(runId: string): Promise<HeaderEntry[]> {
    const rows = await this.#sql.read(this.#statements.headers, [runId]);
    return rows.map((row) => ({
      sequence: Number(row.sequence),
      bytes: Number(row.bytes),
      header: parseHeader(textOf(row.header)),
      setAside: Number(row.aside) !== 0,
    }));
  }

  async records(runId: string, from: number, to: number): Promise<StoredRecord[]> {
    const rows = await this.#sql.read(this.#statements.records, [runId, from, to]);
    return rows.map(recordOf);
  }

  async setAside(
    runId: string,
    sequence: number,
    isBad: () => Promise<boolean>,
  ): Promise<string | undefined> {
    // Looked up first, so that a run that starts over in the meantime is left alone.
    const [run] = await this.#sql.read(this.#statements.identify, [runId]);
    if (run === undefined || !(await isBad())) return undefined;
    const id = Number(run.id);
    // Relisted first: if the process dies in between, the record is found damaged again.
    await this.#relist(runId, id, Number(run.sequence), sequence);
    const rows = await this.#sql.write(this.#statements.setAside, [id, sequence]);
    if (rows.length === 0) return undefined;
    return `${this.place}, checkpoint ${sequence} of run ${show(runId)}`;
  }

  /** Lists a run, whose head is at sequence `head`, from its newest record other than the damaged one. */
  async #relist(runId: string, id: number, head: number, damaged: number): Promise<void> {
    const entries = (await this.headers(runId)).filter(({ setAside }) => !setAside);
    const [newest, before] = entries;
    if (newest?.sequence !== damaged || before?.header === undefined) return;
    const { graph, status, savedAt, metadata } = before.header;
    const { metadataColumn: column } = this.#dialect;
    const listed = [toColumn(graph), status, toColumn(savedAt)];
    const searched = column ? [metadata === undefined ? null : column(metadata)] : [];
    const params = [...listed, ...searched, before.sequence, id, head];
    await this.#sql.write(this.#statements.relist, params);
  }

  async runs(filter: RunFilter): Promise<RunEntry[]> {
    const query = runsQuery(filter, this.#dialect);
    return query === undefined
      ? []
      : (await this.#sql.read(query.text, query.params)).map(runOfRow);
  }

  async list(): Promise<string[]> {
    const rows = await this.#sql.read(this.#statements.list, []);
    return rows.map(runIdIn);
  }

  async find(checkpointId: string): Promise<string | undefined> {
    const [row] = await this.#sql.read(this.#statements.find, [toColumn(checkpointId)]);
    return row && parseHeader(textOf(row.header))?.runId;
  }

  async saveGraph(fingerprint: string, text: string): Promise<void> {
    await this.#sql.write(this.#statements.saveGraph, [toColumn(fingerprint), text]);
  }

  async graph(fingerprint: string): Promise<string | undefined> {
    const [row] = await this.#sql.read(this.#statements.graph, [toColumn(fingerprint)]);
    return row && textOf(row.topology);
  }

  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined> {
    return this.leases.claim(runId, ttl);
  }

  holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.leases.holder(runId);
  }

  /** The id of a run's row, which no other run with the same name ever has. */
  protected async rowOf(runId: string): Promise<number | undefined> {
    const known = this.rows.get(runId);
    if (known !== undefined) return known;
    const [row] = await this.#sql.read(this.#statements.identify, [runId]);
    return row && Number(row.id);
  }

  protected setRow(runId: string, row: number): void {
    if (this.rows.size >= KNOWN_ROWS) this.rows.clear();
    this.rows.set(runId, row);
  }

  /** @throws CheckpointConflictError if another process has claimed the run in a row since this store did. */
  protected checkRemovable(runId: string, run: SqlRow): void {
    const { sequence, claimedBy } = headOf(run, this.leases.held(runId)?.epoch);
    if (claimedBy) throw claimLost(runId, sequence, sequence, claimedBy, "remove it");
  }
}

/**
 * A run's head, from its row, if it has one.
 *
 * @param epoch - the epoch of this store's claim, if it has one.
 */
export function headOf(run: SqlRow | undefined, epoch: number | undefined): Head {
  if (run === undefined) return { sequence: 0, checkpointId: "" };
  const head = { sequence: Number(run.sequence), checkpointId: fromColumn(run.checkpoint_id) };
  if (epoch === undefined || Number(run.epoch) === epoch) return head;
  return { ...head, claimedBy: holderOf(textOf(run.owner)) };
}

function recordOf({ sequence, header, content, sha256 }: SqlRow): StoredRecord {
  return {
    sequence: Number(sequence),
    header: textOf(header),
    content: textOf(content),
    sha256: textOf(sha256),
  };
}

/** A run from its row. One whose header can't be read is listed from its columns. */
function runOfRow(row: SqlRow): RunEntry {
  const at = { runId: textOf(row.run_id), sequence: Number(row.sequence) };
  const header = parseHeader(textOf(row.header));
  if (header === undefined) {
    const status = textOf(row.status) as RunStatus;
    const savedAt = textOf(row.saved_at);
    return unreadableRun({ ...at, graph: fromColumn(row.graph), status, savedAt });
  }
  // Not from the column: a driver may strip a leading U+FEFF.
  return runEntryOf(header, at.sequence);
}
