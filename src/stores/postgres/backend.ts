import {
  type After,
  claimLost,
  type Encode,
  type Head,
  type RecordBackend,
  type Removal,
  type RemoveOptions,
} from "../../checkpoint/records/backend.js";
import type { Claim, ClaimHolder } from "../../checkpoint/store.js";
import { moment } from "../../clock.js";
import { Batcher } from "../../concurrency.js";
import { holderOf, Leases } from "../leases.js";
import { headOf, SqlBackend, type SqlValue, type Statement } from "../sql/backend.js";
import type { SqlDialect, SqlRow } from "../sql/runs.js";
import { runIdIn } from "../sql/text.js";
import { PostgresLeases } from "./claims.js";
import type { Connection } from "./connection.js";
import { isRefused } from "./failure.js";
import { quoted } from "./schema.js";
import {
  arrayOf,
  parametersOf,
  parametersOfAll,
  type SaveRow,
  type Statements,
  saveRow,
  statementsFor,
  toJsonb,
} from "./statements.js";

/** The number of records that one statement removes. */
const DISCARDS = 500;

/** For how many runs to remember the id of the row. */
const KNOWN_ROWS = 10_000;

/** Keeps records in two tables of Postgres. */
export class PostgresBackend extends SqlBackend implements RecordBackend {
  readonly place: string;
  readonly #connection: Connection;
  readonly #statements: Statements;
  readonly #leases: Leases;
  readonly #discards: Batcher<{ readonly id: number; readonly sequences: number[] }, undefined>;
  /** The row ids of recently saved runs. A run that is deleted and starts again gets another row. */
  readonly #rows = new Map<string, number>();
  /** Concurrent saves of many runs share one statement, and so one round trip and flush; each is fenced by itself. */
  readonly #saves: Batcher<SaveRow, string | undefined>;

  constructor(connection: Connection, schema: string) {
    super(dialectOf(schema));
    const statements = statementsFor(schema);
    this.place = `Postgres schema ${quoted(schema)}`;
    this.#connection = connection;
    this.#statements = statements;
    this.#leases = new Leases(new PostgresLeases(connection, statements));
    this.#discards = new Batcher({
      maxSize: DISCARDS,
      sizeOf: ({ sequences }) => sequences.length,
      many: async (all) => {
        const ids = all.flatMap(({ id, sequences }) => sequences.map(() => id));
        const lists = [ids, all.flatMap(({ sequences }) => sequences)];
        await connection.write(statements.discard, lists.map(arrayOf));
        return all.map(() => undefined);
      },
    });
    this.#saves = new Batcher({
      many: (rows) => this.#saveAll(rows),
      one: (row) => this.#save(row),
      isItemFault: isRefused,
      sizeOf: ({ bytes }) => bytes,
    });
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const encoding = encode();
    const record = encoding instanceof Promise ? await encoding : encoding;
    const lease = this.#leases.held(runId);
    const at = moment();
    const row = saveRow(runId, after, record, lease);
    // Unless the run is claimed, it has no row to lock yet.
    const isFirst = row.expected === 0 && row.epoch === null;
    const id = await (isFirst ? this.#save(row, this.#statements.start) : this.#saves.run(row));
    if (id === undefined) return this.#head(runId, lease?.epoch);
    lease?.renewed(at);
    if (this.#rows.size >= KNOWN_ROWS) this.#rows.clear();
    this.#rows.set(runId, Number(id));
    return undefined;
  }

  protected read(
    statement: Statement | string,
    params: readonly SqlValue[],
  ): Promise<readonly SqlRow[]> {
    return this.#connection.read(statement, params);
  }

  protected write(statement: Statement, params: readonly SqlValue[]): Promise<readonly SqlRow[]> {
    return this.#connection.write(statement, params);
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const id = this.#rows.get(runId) ?? (await this.rowOf(runId));
    for (let from = 0; id !== undefined && from < sequences.length; from += DISCARDS) {
      await this.#discards.run({ id, sequences: sequences.slice(from, from + DISCARDS) });
    }
  }

  /** @throws CheckpointConflictError if this store had claimed one of them and another process has claimed it since. */
  async remove(runs: readonly Removal[], options: RemoveOptions): Promise<string[]> {
    const { look, lock, removeCheckpoints, removeRuns, emptyRuns, sweep } = this.#statements;
    const { unclaimed, dryRun } = options;
    const sequences = new Map(runs.map(({ runId, sequence }) => [runId, sequence]));
    const ids = [arrayOf([...sequences.keys()])];
    const removable = (rows: readonly SqlRow[]): SqlRow[] =>
      rows.filter((run) => {
        if (unclaimed && run.claimed === true) return false;
        const sequence = sequences.get(runIdIn(run)) ?? Number(run.sequence);
        return sequence === Number(run.sequence);
      });
    if (dryRun) return runIds(removable(await this.#connection.read(look, ids)));
    let meant: Map<string, unknown> | undefined;
    await this.#connection.transaction(async (session) => {
      // While the row of a run is locked, nobody can add a checkpoint that this would miss.
      const found = removable(await session.query(lock, ids));
      meant ??= new Map(found.map((run) => [runIdIn(run), run.id]));
      // With another id, the run was removed before the response was lost, and this one has started since.
      const gone = found.filter((run) => meant?.get(runIdIn(run)) === run.id);
      for (const run of gone) this.#checkClaim(run);
      const isClaimed = ({ claimed }: SqlRow): boolean => claimed === true;
      await session.query(removeCheckpoints, [arrayOf(gone.map(({ id }) => Number(id)))]);
      await session.query(removeRuns, [arrayOf(runIds(gone.filter((run) => !isClaimed(run))))]);
      const claimed = gone.filter(isClaimed);
      if (claimed.length > 0) await session.query(emptyRuns, [arrayOf(runIds(claimed))]);
    });
    if (unclaimed) await this.#connection.write(sweep, []);
    return [...(meant?.keys() ?? [])];
  }

  claim(runId: string, ttl: number | undefined): Promise<Claim | undefined> {
    return this.#leases.claim(runId, ttl);
  }

  holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#leases.holder(runId);
  }

  /** The runs claimed by a live process. */
  async claimed(): Promise<Set<string>> {
    return new Set(runIds(await this.#connection.read(this.#statements.claimed)));
  }

  async close(): Promise<void> {
    try {
      await this.#leases.close();
    } finally {
      await this.#connection.close();
    }
  }

  async #save(row: SaveRow, statement = this.#statements.save): Promise<string | undefined> {
    const [saved] = await this.#connection.write(statement, parametersOf(row));
    return saved && String(saved.run);
  }

  async #saveAll(rows: readonly SaveRow[]): Promise<(string | undefined)[]> {
    const saved = await this.#connection.write(this.#statements.saveAll, parametersOfAll(rows));
    const ids = new Map(saved.map(({ checkpoint_id, run }) => [checkpoint_id, String(run)]));
    return rows.map(({ checkpoint_id }) => ids.get(checkpoint_id));
  }

  /** @param epoch - the epoch of this store's claim, if it has one. */
  async #head(runId: string, epoch: number | undefined): Promise<Head> {
    const [row] = await this.#connection.read(this.#statements.head, [runId]);
    const head = headOf(row?.sequence ?? 0, row?.checkpoint_id ?? "");
    if (epoch === undefined || Number(row?.epoch) === epoch) return head;
    return { ...head, claimedBy: holderOf(String(row?.owner ?? "")) };
  }

  #checkClaim(run: SqlRow): void {
    const runId = runIdIn(run);
    const lease = this.#leases.held(runId);
    if (lease === undefined || lease.epoch === Number(run.epoch)) return;
    const sequence = Number(run.sequence);
    throw claimLost(runId, sequence, sequence, holderOf(String(run.owner)), "remove it");
  }
}

function runIds(rows: readonly SqlRow[]): string[] {
  return rows.map(runIdIn);
}

function dialectOf(schema: string): SqlDialect {
  return {
    table: (name) => `${quoted(schema)}.${name}`,
    placeholder: (place) => `$${place}`,
    text: (column) => column,
    metadataColumn: toJsonb,
    metadata: (metadata, parameter) =>
      Object.keys(metadata).length === 0
        ? []
        : [`metadata @> ${parameter(toJsonb(metadata))}::jsonb`],
  };
}
