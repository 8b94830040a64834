import type {
  After,
  Encode,
  Head,
  RecordBackend,
  Removal,
  RemoveOptions,
} from "../../checkpoint/records/backend.js";
import { moment } from "../../clock.js";
import { Batcher } from "../../concurrency.js";
import { type LeaseKeeper, Leases } from "../leases.js";
import { isRefused } from "../postgres-failure.js";
import {
  headOf,
  SqlBackend,
  type SqlDialect,
  type SqlRow,
  type Statement,
} from "../sql/backend.js";
import { runIdIn, toColumn } from "../sql/text.js";
import type { Connection } from "./connection.js";
import { quoted } from "./schema.js";
import {
  arrayOf,
  parametersOf,
  parametersOfAll,
  type Save,
  type Statements,
  statementsFor,
  toJsonb,
} from "./statements.js";

/** The number of records that one statement removes. */
const DISCARDS = 500;

/** A lease to acquire, renew or release. */
interface LeaseRequest {
  readonly runId: string;
  readonly owner: string;
  readonly epoch: number;
  readonly ttl: number;
}

/** Resolves to the epoch of the lease; `undefined` if nothing was done. */
type LeaseBatcher = Batcher<LeaseRequest, number | undefined>;

/** Keeps records in two tables of Postgres. */
export class PostgresBackend extends SqlBackend implements RecordBackend, LeaseKeeper {
  readonly place: string;
  readonly #connection: Connection;
  readonly #statements: Statements;
  protected readonly leases = new Leases(this);
  /** Leases are kept in the rows of the runs, by the clock of the database. */
  readonly #claims: LeaseBatcher;
  readonly #renewals: LeaseBatcher;
  readonly #releases: LeaseBatcher;
  readonly #discards: Batcher<{ readonly id: number; readonly sequences: number[] }, undefined>;
  /** Concurrent saves of many runs share one statement, and so one round trip and flush; each is fenced by itself. */
  readonly #saves: Batcher<Save, string | undefined>;

  constructor(connection: Connection, schema: string) {
    super(connection, dialectOf(schema));
    const statements = statementsFor(schema);
    this.place = `Postgres schema ${quoted(schema)}`;
    this.#connection = connection;
    this.#statements = statements;
    this.#claims = this.#batched(statements.claim, "runId", "owner", "ttl");
    this.#renewals = this.#batched(statements.renew, "runId", "epoch", "ttl");
    this.#releases = this.#batched(statements.release, "runId", "epoch");
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
      many: (saves) => this.#saveAll(saves),
      one: (save) => this.#save(save),
      isItemFault: isRefused,
      sizeOf: ({ record }) => record.bytes,
    });
  }

  async append(runId: string, after: After, encode: Encode): Promise<Head | undefined> {
    const encoding = encode();
    const record = encoding instanceof Promise ? await encoding : encoding;
    const lease = this.leases.held(runId);
    const at = moment();
    const save = { runId, after, record, lease };
    // Unless the run is claimed, it has no row to lock yet.
    const isFirst = after.sequence === 0 && lease === undefined;
    const id = await (isFirst ? this.#save(save, this.#statements.start) : this.#saves.run(save));
    if (id === undefined) {
      const [run] = await this.#connection.read(this.#statements.head, [runId]);
      return headOf(run, lease?.epoch);
    }
    lease?.renewed(at);
    this.setRow(runId, Number(id));
    return undefined;
  }

  async discard(runId: string, sequences: readonly number[]): Promise<void> {
    const id = await this.rowOf(runId);
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
      for (const run of gone) this.checkRemovable(runIdIn(run), run);
      const isClaimed = ({ claimed }: SqlRow): boolean => claimed === true;
      await session.query(removeCheckpoints, [arrayOf(gone.map(({ id }) => Number(id)))]);
      await session.query(removeRuns, [arrayOf(runIds(gone.filter((run) => !isClaimed(run))))]);
      const claimed = gone.filter(isClaimed);
      if (claimed.length > 0) await session.query(emptyRuns, [arrayOf(runIds(claimed))]);
    });
    if (unclaimed) await this.#connection.write(sweep, []);
    return [...(meant?.keys() ?? [])];
  }

  acquire(runId: string, owner: string, ttl: number): Promise<number | undefined> {
    return this.#claims.run({ runId, owner, ttl, epoch: 0 });
  }

  async renew(runId: string, epoch: number, ttl: number): Promise<boolean> {
    return (await this.#renewals.run({ runId, epoch, ttl, owner: "" })) !== undefined;
  }

  async release(runId: string, epoch: number): Promise<void> {
    await this.#releases.run({ runId, epoch, ttl: 0, owner: "" });
  }

  async owner(runId: string): Promise<string | undefined> {
    const [row] = await this.#connection.read(this.#statements.holder, [runId]);
    return row && String(row.owner);
  }

  async evict(runId: string, owner: string): Promise<void> {
    await this.#connection.write(this.#statements.evict, [runId, owner]);
  }

  async close(): Promise<void> {
    await this.leases.close();
    await this.#connection.close();
  }

  async #save(save: Save, statement = this.#statements.save): Promise<string | undefined> {
    const [saved] = await this.#connection.write(statement, parametersOf(save));
    return saved && String(saved.run);
  }

  async #saveAll(saves: readonly Save[]): Promise<(string | undefined)[]> {
    const saved = await this.#connection.write(this.#statements.saveAll, parametersOfAll(saves));
    const ids = new Map(saved.map(({ checkpoint_id, run }) => [checkpoint_id, String(run)]));
    return saves.map(({ record }) => ids.get(toColumn(record.fields.checkpointId)));
  }

  /** Sends the requests of several runs in one statement; returns the epochs of those it succeeded for. */
  #batched(statement: Statement, ...fields: readonly (keyof LeaseRequest)[]): LeaseBatcher {
    return new Batcher({
      isItemFault: isRefused,
      many: async (all) => {
        const lists = fields.map((field) => arrayOf(all.map((one) => one[field])));
        const rows = await this.#connection.write(statement, lists);
        const epochs = new Map(rows.map((row) => [runIdIn(row), Number(row.epoch)]));
        return all.map(({ runId }) => epochs.get(runId));
      },
    });
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
