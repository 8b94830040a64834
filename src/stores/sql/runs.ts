import { type RunEntry, runEntryOf, unreadableRun } from "../../checkpoint/records/backend.js";
import { parseHeader } from "../../checkpoint/records/header.js";
import type { RunFilter } from "../../checkpoint/store.js";
import type { Metadata } from "../../state/metadata.js";
import { type RunStatus, statuses } from "../../state/record.js";
import { fromColumn, textOf, toColumn } from "./text.js";

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

const TEXTS = ["run_id", "graph", "status", "saved_at", "header"];
const COLUMNS = ["sequence", ...TEXTS].join(", ");

/**
 * Finds runs, newest save first; `undefined` if no run can match. Each status is a separate subquery in the
 * order of an index on `(status, saved_at, run_id)` or `(graph, status, saved_at, run_id)`, and the database
 * merges them, so a page costs the same at any position and for any filter by these columns.
 */
export function runsQuery(
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

/** A run from its row. One whose header can't be read is listed from its columns. */
export function runOfRow(row: SqlRow): RunEntry {
  const at = { runId: textOf(row.run_id), sequence: Number(row.sequence) };
  const header = parseHeader(textOf(row.header));
  if (header === undefined) {
    const status = textOf(row.status) as RunStatus;
    const savedAt = textOf(row.saved_at);
    return unreadableRun({ ...at, graph: fromColumn(row.graph), status, savedAt });
  }
  // Not from the column: a driver may strip a leading U+FEFF.
  return { ...runEntryOf(header, at.sequence), runId: header.runId };
}
