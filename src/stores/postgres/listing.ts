import { checkFilter, checkRetention } from "../../checkpoint/retention.js";
import type { Retention, RunFilter, RunSummary } from "../../checkpoint/store.js";
import { now } from "../../clock.js";
import { type RunStatus, statuses } from "../../state/record.js";
import type { Claims } from "./claims.js";
import type { Connection } from "./connection.js";
import type { Row } from "./database.js";
import { quoted } from "./schema.js";
import type { Statements } from "./statements.js";
import { fromColumn, toColumn } from "./text.js";

const DAY = 24 * 60 * 60 * 1000;
const finished: readonly RunStatus[] = ["completed", "failed"];
/** How many runs are removed in one transaction. */
const PAGE = 100;

/** A place in the order of runs: up to a moment, or up to and with one run of it. */
interface Place {
  readonly timestamp: string;
  readonly runId: string;
}

/** Lists runs, and removes them. */
export class Listing {
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #claims: Claims;
  readonly #runs: string;

  constructor(connection: Connection, statements: Statements, claims: Claims, schema: string) {
    this.#connection = connection;
    this.#statements = statements;
    this.#claims = claims;
    this.#runs = `${quoted(schema)}.runs`;
  }

  /** The runs that fit a filter, most recent first. */
  async runs(filter: RunFilter = {}): Promise<RunSummary[]> {
    checkFilter(filter);
    const { status = statuses, graph, before, cursor, limit } = filter;
    const wanted = [status].flat();
    if (wanted.length === 0) return [];
    const query = new RunQuery(this.#runs, wanted);
    if (graph !== undefined) query.where(`graph = ${query.parameter(toColumn(graph))}`);
    // Of two bounds Postgres may begin at the wider one, and read all that is between them.
    const moment = before && new Date(before).toISOString();
    if (moment !== undefined && !(cursor && cursor.timestamp < moment)) {
      query.where(`"timestamp" < ${query.parameter(moment)}`);
    } else if (cursor !== undefined) {
      query.place("<", cursor);
    }
    return (await this.#find(query, limit)).map(summaryOf);
  }

  /** Removes finished runs, page by page; see {@link Retention}. */
  async prune(retention: Retention): Promise<string[]> {
    checkRetention(retention);
    const newest = await this.#newestToRemove(retention);
    const removed: string[] = [];
    let cursor: Place | undefined;
    while (newest !== undefined) {
      const query = new RunQuery(this.#runs, finished);
      if (cursor === undefined) query.place("<=", newest);
      else query.place("<", cursor);
      const page = await this.#find(query, PAGE);
      const last = page.at(-1);
      if (last === undefined) break;
      cursor = placeOf(last);
      removed.push(...(retention.dryRun === true ? page.map(runIdOf) : await this.#remove(page)));
    }
    if (retention.dryRun !== true) await this.#connection.query(this.#statements.sweep);
    return removed;
  }

  /**
   * Removes a run; one that is claimed stays claimed.
   *
   * @param at - only while its newest checkpoint has this sequence.
   * @throws CheckpointConflictError when this store had claimed it, and another has since.
   */
  async delete(runId: string, at?: number): Promise<void> {
    const { lock, removeCheckpoints, removeRuns, empty } = this.#statements;
    let meant: unknown;
    await this.#connection.transaction(async (session) => {
      // Once its row is locked nobody adds a checkpoint that this would not see.
      const [run] = await session.query(lock, [[runId]]);
      meant ??= run?.id;
      // It was done when the answer was lost, and what is here now has started since.
      if (run === undefined || run.id !== meant) return;
      if (at !== undefined && Number(run.sequence) !== at) return;
      this.#claims.check(runId, Number(run.epoch), Number(run.sequence));
      await session.query(removeCheckpoints, [[run.id]]);
      if (run.claimed === true) await session.query(empty, [runId]);
      else await session.query(removeRuns, [[runId]]);
    });
  }

  /** Removes runs that are still as they were found and nobody has claimed; gives the ids of those that are gone. */
  #remove(page: readonly Row[]): Promise<string[]> {
    const { lock, removeCheckpoints, removeRuns } = this.#statements;
    const found = new Map(page.map((row) => [runIdOf(row), Number(row.sequence)]));
    return this.#connection.transaction(async (session) => {
      const there = await session.query(lock, [[...found.keys()]]);
      const kept = there.filter(
        (run) => run.claimed === true || Number(run.sequence) !== found.get(runIdOf(run)),
      );
      const gone = there.filter((run) => !kept.includes(run));
      await session.query(removeCheckpoints, [gone.map(({ id }) => id)]);
      await session.query(removeRuns, [gone.map(runIdOf)]);
      for (const run of kept) found.delete(runIdOf(run));
      return [...found.keys()];
    });
  }

  /** The most recent run that is to be removed, or the moment before which all are. */
  async #newestToRemove({ maxAgeDays, maxRuns }: Retention): Promise<Place | undefined> {
    const oldest = now() - (maxAgeDays ?? Number.POSITIVE_INFINITY) * DAY;
    // No run has an empty id, so this comes before all of its moment.
    const byAge = Number.isFinite(oldest) ? { timestamp: isoOf(oldest), runId: "" } : undefined;
    if (maxRuns === undefined) return byAge;
    const query = new RunQuery(this.#runs, finished);
    const [row] = await this.#connection.query(query.text(1, maxRuns), query.params);
    if (row === undefined) return byAge;
    const byCount = placeOf(row);
    return byAge === undefined || byCount.timestamp >= byAge.timestamp ? byCount : byAge;
  }

  #find(query: RunQuery, limit?: number): Promise<Row[]> {
    const text = query.text(limit, 0, ", sequence, graph, status, node, step");
    return this.#connection.query(text, query.params);
  }
}

/**
 * Finds runs, most recent first. Each status is a part of its own, in the order of an index, and
 * Postgres merges the parts: so a page costs the same wherever it is, and whatever it is a page of.
 */
class RunQuery {
  readonly params: unknown[] = [];
  readonly #runs: string;
  readonly #statuses: readonly string[];
  readonly #conditions: string[] = [];

  constructor(runs: string, wanted: readonly RunStatus[]) {
    this.#runs = runs;
    this.#statuses = [...new Set(wanted)].map((status) => this.parameter(status));
  }

  parameter(value: unknown): string {
    return `$${this.params.push(value)}`;
  }

  where(condition: string): void {
    this.#conditions.push(condition);
  }

  place(operator: "<" | "<=", { timestamp, runId }: Place): void {
    const [moment, id] = [this.parameter(toColumn(timestamp)), this.parameter(runId)];
    this.where(`("timestamp", run_id) ${operator} (${moment}, ${id})`);
  }

  /** @param columns - besides those of the order; without any an index alone can answer. */
  text(limit: number | undefined, offset: number, columns = ""): string {
    const most = limit === undefined ? "" : `LIMIT ${this.parameter(limit + offset)}`;
    const order = `ORDER BY "timestamp" DESC, run_id DESC`;
    const parts = this.#statuses.map((status) => {
      const conditions = [`status = ${status}`, ...this.#conditions].join(" AND ");
      return `(SELECT "timestamp", run_id ${columns} FROM ${this.#runs} WHERE ${conditions} ${order} ${most})`;
    });
    const skip = offset === 0 ? "" : `OFFSET ${this.parameter(offset)}`;
    return `SELECT * FROM (${parts.join(" UNION ALL ")}) found ${order} ${most} ${skip}`;
  }
}

function summaryOf(row: Row): RunSummary {
  return {
    runId: runIdOf(row),
    graph: fromColumn(row.graph),
    status: String(row.status) as RunStatus,
    node: fromColumn(row.node),
    step: Number(row.step),
    timestamp: fromColumn(row.timestamp),
  };
}

const runIdOf = (row: Row): string => String(row.run_id);
const placeOf = (row: Row): Place => ({
  timestamp: fromColumn(row.timestamp),
  runId: runIdOf(row),
});

/** A moment as ISO 8601; before the year 0 nothing has happened. */
function isoOf(ms: number): string {
  return new Date(Math.max(ms, -62_167_219_200_000)).toISOString();
}
