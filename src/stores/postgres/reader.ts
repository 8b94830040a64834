import type { CheckpointAt, HistoryEntry, StoreContext } from "../../checkpoint/store.js";
import { noneWhole, notFound } from "../../checkpoint/store.js";
import { CheckpointCorruptionError, show } from "../../errors.js";
import type { RunStatus } from "../../state/record.js";
import type { State } from "../../state/state.js";
import { areLinked, corrupt, type Read, type RecordCodec, readRecord } from "../journal/record.js";
import type { Connection } from "./connection.js";
import { type Row, type Statement, statement } from "./database.js";
import { messageOf } from "./failure.js";
import { quoted } from "./schema.js";
import type { Statements } from "./statements.js";
import { fromColumn, toColumn } from "./text.js";

/** What a reader needs of its store. */
export interface ReaderSettings {
  readonly schema: string;
  readonly connection: Connection;
  readonly statements: Statements;
  readonly codec: RecordCodec;
}

/** A State that was loaded. */
export interface Loaded<D extends object> {
  readonly state: State<D>;
  /** The id of the newest checkpoint of its run. */
  readonly head: string;
}

type Emit = StoreContext["emit"];

/** Reads the checkpoints of runs. */
export class PostgresReader {
  readonly #settings: ReaderSettings;
  /** How to load the newest, one by its step, one by its id, one by both. */
  readonly #loads: ReadonlyMap<string, Statement>;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
    const conditions = ["", "step", "id", "step id"];
    this.#loads = new Map(conditions.map((by) => [by, loadStatement(settings.schema, by)]));
  }

  /**
   * The newest State that is whole, or the newest of those asked for. What is corrupt is set aside.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when there are only corrupt ones.
   */
  async load<D extends object>(runId: string, at: CheckpointAt, emit: Emit): Promise<Loaded<D>> {
    const faults: CheckpointCorruptionError[] = [];
    for (let below = Number.MAX_SAFE_INTEGER; ; ) {
      const rows = await this.#chain(runId, at, below);
      const last = rows.at(-1);
      if (last === undefined) throw await this.#nothingLeft(runId, at, faults);
      const state = await this.#state<D>(runId, rows, last);
      if (state instanceof Corruption) {
        faults.push(await this.#setAside(runId, state, emit));
        below = Number(last.sequence);
        continue;
      }
      const isAny = at.step === undefined && at.checkpointId === undefined;
      // What comes next goes after all that was ever there, also after what is corrupt.
      const sequence = isAny ? Number(last.head) : state.sequence;
      const { checkpointId } = state;
      const saved = state.savedAs({ checkpointId, sequence, bytes: Number(last.bytes) });
      return { state: saved, head: fromColumn(last.head_id) };
    }
  }

  /** The checkpoints that are kept, newest first. Nothing is verified. */
  async history(runId: string): Promise<HistoryEntry[]> {
    const { connection, statements } = this.#settings;
    const rows = await connection.query(statements.history, [runId]);
    return rows.map((row) => ({
      sequence: Number(row.sequence),
      step: Number(row.step),
      node: fromColumn(row.node),
      status: String(row.status) as RunStatus,
      timestamp: fromColumn(row.timestamp),
      checkpointId: fromColumn(row.checkpoint_id),
      parentId: fromColumn(row.parent_id),
      reason: fromColumn(row.reason),
      bytes: Number(row.bytes),
    }));
  }

  /** The newest checkpoint that fits, after all that it builds on. */
  #chain(runId: string, at: CheckpointAt, below: number): Promise<Row[]> {
    const { step, checkpointId } = at;
    const by = [step === undefined ? "" : "step", checkpointId === undefined ? "" : "id"];
    const load = this.#loads.get(by.join(" ").trim());
    const id = checkpointId === undefined ? [] : [toColumn(checkpointId)];
    const params = [runId, below, ...(step === undefined ? [] : [step]), ...id];
    return load === undefined ? Promise.resolve([]) : this.#settings.connection.query(load, params);
  }

  /** The State of the last of these. */
  async #state<D extends object>(
    runId: string,
    rows: readonly Row[],
    last: Row,
  ): Promise<State<D> | Corruption> {
    const { codec } = this.#settings;
    const reads = this.#read(runId, rows);
    if (reads instanceof Corruption) return reads;
    const where = this.#where(runId, last.sequence);
    try {
      return await codec.decode<D>(reads, where);
    } catch (error) {
      if (!(error instanceof CheckpointCorruptionError)) throw error;
      // Its hash fits, what it holds does not: somebody has changed it who could make a hash.
      return new Corruption(rows[await codec.firstSpoiled(reads, where)] ?? last, error);
    }
  }

  #read(runId: string, rows: readonly Row[]): readonly Read[] | Corruption {
    const reads: Read[] = [];
    for (const row of rows) {
      const where = this.#where(runId, row.sequence);
      try {
        const read = readRecord(Buffer.from(String(row.body)), where, runId);
        const { sequence, checkpointId } = read.header;
        if (sequence !== Number(row.sequence) || checkpointId !== fromColumn(row.checkpoint_id)) {
          const expected = `checkpoint ${show(fromColumn(row.checkpoint_id))}`;
          throw corrupt(where, expected, `checkpoint ${show(checkpointId)}`);
        }
        reads.push(read);
      } catch (error) {
        if (!(error instanceof CheckpointCorruptionError)) throw error;
        return new Corruption(row, error);
      }
    }
    const [first] = rows;
    const last = rows.at(-1);
    if (last !== undefined && (first?.sequence !== last.base || !areLinked(reads))) {
      const where = this.#where(runId, last.sequence);
      const what = `the checkpoints from sequence ${last.base} on, which it builds on`;
      return new Corruption(last, corrupt(where, what, "a gap"));
    }
    return reads;
  }

  /** Marks a row, so that nobody reads it again. If that can't be done the next older is used all the same. */
  async #setAside(
    runId: string,
    { row, error }: Corruption,
    emit: Emit,
  ): Promise<CheckpointCorruptionError> {
    const { connection, statements } = this.#settings;
    const file = this.#where(runId, row.sequence);
    const { expected, actual } = error;
    try {
      await connection.query(statements.quarantine, [runId, row.sequence, row.checkpoint_id]);
      emit?.("checkpoint.quarantine", { file, expected, actual });
    } catch (failure) {
      const problem = `${file} is corrupt, and could not be set aside: ${messageOf(failure)}`;
      emit?.("checkpoint.error", { action: "load", node: "", error: problem });
    }
    return error;
  }

  async #nothingLeft(
    runId: string,
    at: CheckpointAt,
    faults: readonly CheckpointCorruptionError[],
  ): Promise<Error> {
    const { connection, statements, schema } = this.#settings;
    const [first] = faults;
    if (first !== undefined) {
      const reasons = faults.map(({ message }) => message).join("; ");
      return new CheckpointCorruptionError(`${noneWhole(runId, at)}: ${reasons}`, {
        expected: first.expected,
        actual: first.actual,
        cause: first,
      });
    }
    const isAny = at.step === undefined && at.checkpointId === undefined;
    const [row] = isAny ? await connection.query(statements.where, [runId, 0]) : [];
    if (Number(row?.sequence ?? 0) === 0) return notFound(runId, at);
    return new CheckpointCorruptionError(
      `run ${show(runId)} has only corrupt checkpoints, which are quarantined in ${quoted(schema)}.checkpoints`,
      { expected: "a checkpoint that is whole", actual: "none that is not quarantined" },
    );
  }

  #where(runId: string, sequence: unknown): string {
    const { schema } = this.#settings;
    return `${quoted(schema)}.checkpoints, run ${show(runId)}, sequence ${sequence}`;
  }
}

/** A row that is not what was written. */
class Corruption {
  readonly row: Row;
  readonly error: CheckpointCorruptionError;

  constructor(row: Row, error: CheckpointCorruptionError) {
    this.row = row;
    this.error = error;
  }
}

function loadStatement(schema: string, by: string): Statement {
  const step = by.includes("step") ? "AND step = $3" : "";
  const id = by.includes("id") ? `AND checkpoint_id = $${step === "" ? 3 : 4}` : "";
  const checkpoints = `${quoted(schema)}.checkpoints`;
  return statement(`
    SELECT r.sequence AS head, r.checkpoint_id AS head_id, c.sequence, c.base, c.checkpoint_id, c.bytes, c.body
    FROM ${quoted(schema)}.runs r
      CROSS JOIN LATERAL (
        SELECT sequence, base FROM ${checkpoints}
        WHERE run = r.id AND sequence >= r.first_kept AND sequence < $2::bigint AND NOT quarantined ${step} ${id}
        ORDER BY sequence DESC LIMIT 1) t
      JOIN ${checkpoints} c ON c.run = r.id AND c.sequence BETWEEN t.base AND t.sequence
    WHERE r.run_id = $1 ORDER BY c.sequence`);
}
