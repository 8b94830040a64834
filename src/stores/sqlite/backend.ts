import type {
  After,
  Encode,
  Head,
  NewRecord,
  RecordBackend,
  Removal,
  RemoveOptions,
} from "../../checkpoint/records/backend.js";
import type { Finding } from "../../checkpoint/store.js";
import { messageOf } from "../../errors.js";
import { isOwnerLiving, type LeaseKeeper, Leases } from "../leases.js";
import {
  headOf,
  SqlBackend,
  type SqlDialect,
  type SqlRow,
  type SqlRunner,
  statementsOf,
} from "../sql/backend.js";
import { textOf, toColumn } from "../sql/text.js";
import type { Connection } from "./connection.js";
import { Database, type DatabaseSettings } from "./database.js";
import { statements } from "./statements.js";

/** How many runs are removed in one transaction. */
const RUNS = 100;

/** About how many records a single statement removes in the time it takes to save one. */
const REMOVED_PER_SAVED = 8;

/** How many pages are returned to the file system in one transaction. */
const PAGES = 200;

const dialect: SqlDialect = {
  table: (name) => name,
  // As bytes: on text that is not UTF-8, which a damaged file may contain, libsql ends the process.
  text: (column) => `CAST(${column} AS BLOB)`,
  placeholder: () => "?",
  metadata: (metadata, parameter) =>
    Object.entries(metadata).map(([key, value]) => {
      // Compared as JSON, so that the number 1, the string "1" and true differ.
      const json = JSON.stringify(value);
      if (/^[\w.: -]+$/.test(key)) {
        return `header -> ${parameter(`$.metadata."${key}"`)} = ${parameter(json)}`;
      }
      const entry = `SELECT value FROM json_each(header, '$.metadata') WHERE key = ${parameter(key)}`;
      return `json_quote((${entry})) = ${parameter(json)}`;
    }),
};

const shared = statementsOf(dialect);

/** Keeps records in the tables of a SQLite database. */
export class SqliteBackend extends SqlBackend implements RecordBackend, LeaseKeeper {
  readonly #database: Database;
  protected readonly leases = new Leases(this);
  #shrinking: Promise<void> | undefined;

  constructor(settings: DatabaseSettings) {
    const database = new Database(settings);
    super(runnerOf(database), dialect, shared);
    this.#database = database;
  }

  get place(): string {
    return this.#database.place;
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const encoding = encode();
    const record = encoding instanceof Promise ? await encoding : encoding;
    const work = (connection: Connection) => this.#append(connection, runId, after, record);
    return this.#database.write(work, { flushes: true, bytes: record.bytes });
  }

  #append(
    connection: Connection,
    runId: string,
    after: After,
    { fields, header, base, bytes, sha256, content }: NewRecord,
  ): Head | undefined {
    const { sequence, checkpointId, graph, status, savedAt } = fields;
    const id = toColumn(checkpointId);
    const columns = [sequence, id, toColumn(graph), status, savedAt, header] as const;
    const epoch = this.leases.held(runId)?.epoch;
    const before = after.checkpointId === undefined ? null : toColumn(after.checkpointId);
    const fence = [runId, after.sequence, before, epoch ?? null] as const;
    // The statement checks that a known row is still the run's.
    let row = this.rows.get(runId);
    if (
      row === undefined ||
      connection.run(statements.advanceRow, ...columns, row, ...fence) !== 1
    ) {
      const written =
        after.sequence === 0 && epoch === undefined
          ? connection.run(statements.start, ...columns, runId)
          : connection.run(statements.advance, ...columns, ...fence);
      if (written !== 1) return headOf(connection.get(statements.run, runId), epoch);
      row = Number(connection.get(shared.identify.text, runId)?.id);
      this.setRow(runId, row);
    }
    connection.run(statements.insert, row, sequence, base, bytes, id, header, sha256, content);
    return undefined;
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const work = (connection: Connection): unknown =>
      connection.run(statements.discard, runId, JSON.stringify(sequences));
    const count = Math.ceil(sequences.length / REMOVED_PER_SAVED);
    await this.#database.write(work, { flushes: false, count });
  }

  /**
   * @throws CheckpointConflictError if this store had claimed one of them and another process has claimed it
   * since.
   */
  async remove(runs: readonly Removal[], options: RemoveOptions): Promise<string[]> {
    const { unclaimed, dryRun } = options;
    if (dryRun) {
      return this.#database.read((one) => this.#removable(one, runs, unclaimed).map(idOf), []);
    }
    const isThere = await this.#database.read(() => true, false);
    if (!isThere) return [];
    const removed: string[] = [];
    for (let from = 0; from < runs.length; from += RUNS) {
      const page = runs.slice(from, from + RUNS);
      const work = (connection: Connection): string[] => {
        const removable = this.#removable(connection, page, unclaimed);
        for (const { id, isClaimed } of removable) {
          connection.run(statements.removeRecords, id);
          connection.run(isClaimed ? statements.empty : statements.removeRun, id);
        }
        connection.run(statements.sweep, Date.now());
        return removable.map(idOf);
      };
      removed.push(...(await this.#database.write(work, { flushes: true, count: page.length })));
    }
    const over = (): void => {
      this.#shrinking = undefined;
    };
    // In the background; pages that can't be returned are reused.
    this.#shrinking ??= this.#shrink().then(over, over);
    return removed;
  }

  /** The runs among these that have not changed since they were found. */
  #removable(
    connection: Connection,
    runs: readonly Removal[],
    unclaimed: boolean,
  ): { runId: string; id: number; isClaimed: boolean }[] {
    return runs.flatMap(({ runId, sequence }) => {
      const run = connection.get(statements.run, runId);
      if (run === undefined) return [];
      const [id, at] = [Number(run.id), Number(run.sequence)];
      const isClaimed = isGood(run);
      if ((sequence ?? at) !== at || (unclaimed && isClaimed)) return [];
      this.checkRemovable(runId, run);
      return [{ runId, id, isClaimed }];
    });
  }

  /** Returns free pages to the file system. */
  async #shrink(): Promise<void> {
    const step = (connection: Connection): boolean => {
      const before = Number(connection.pragma("freelist_count"));
      connection.exec(`PRAGMA incremental_vacuum(${PAGES})`);
      const left = Number(connection.pragma("freelist_count"));
      return left > 0 && left < before;
    };
    while (await this.#database.write(step, { flushes: false, count: PAGES }));
  }

  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    const work = (connection: Connection): number | undefined => {
      const run = connection.get(statements.run, runId);
      // The same owner asks again if the answer did not reach it.
      if (run !== undefined && isGood(run) && textOf(run.owner) !== owner) return undefined;
      const epoch = Number(connection.get(statements.nextEpoch)?.last);
      connection.run(statements.claim, runId, epoch, owner, Date.now() + ttl);
      return epoch;
    };
    return this.#database.write(work, { flushes: false });
  }

  renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    const work = (connection: Connection): boolean =>
      connection.run(statements.renew, Date.now() + ttl, runId, epoch) === 1;
    return this.#database.write(work, { flushes: false });
  }

  release(runId: string, epoch: number): Promise<void> {
    const work = (connection: Connection): void => {
      connection.run(statements.forget, runId, epoch);
      connection.run(statements.release, runId, epoch);
    };
    return this.#database.write(work, { flushes: false });
  }

  owner(runId: string): Promise<string | undefined> {
    return this.#database.read((connection) => {
      const run = connection.get(statements.run, runId);
      return run !== undefined && isGood(run) ? textOf(run.owner) : undefined;
    }, undefined);
  }

  async *verify(): AsyncGenerator<Finding> {
    const rows = await this.#database
      .read<SqlRow[]>((one) => one.query("PRAGMA integrity_check", []), [])
      .catch((error: unknown) => [{ integrity_check: messageOf(error) }]);
    for (const { integrity_check: actual } of rows) {
      if (actual === "ok") continue;
      yield { runId: "", sequence: 0, problem: "database", expected: "ok", actual: String(actual) };
    }
  }

  async close(): Promise<void> {
    await this.leases.close();
    await this.#shrinking;
    await this.#database.close();
  }
}

function runnerOf(database: Database): SqlRunner {
  return {
    read: (asked, params) => {
      const rows = (one: Connection): SqlRow[] =>
        typeof asked === "string" ? one.query(asked, params) : one.all(asked.text, ...params);
      return database.read(rows, []);
    },
    write: ({ text }, params) =>
      database.write((one) => one.all(text, ...params), { flushes: false }),
  };
}

/**
 * Whether a claim is valid by the machine's clock, which all its processes share, and its process is not
 * known to be dead.
 */
function isGood({ lease_until: until, owner }: SqlRow): boolean {
  return Number(until) > Date.now() && isOwnerLiving(textOf(owner)) !== false;
}

function idOf({ runId }: { readonly runId: string }): string {
  return runId;
}
