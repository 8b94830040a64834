import { v7 } from "uuid";
import { CheckpointConflictError, show } from "../../errors.js";
import type { Saved } from "../../state/record.js";
import { State } from "../../state/state.js";
import type { Base, RecordCodec } from "../journal/record.js";
import type { Claims } from "./claims.js";
import type { Committer } from "./committer.js";
import type { Connection } from "./connection.js";
import { isUnsure } from "./failure.js";
import type { SaveRow, Statements } from "./statements.js";
import { toColumn } from "./text.js";
import type { Trimmer } from "./trimmer.js";

/** What a writer needs of its store. */
export interface WriterSettings {
  readonly connection: Connection;
  readonly statements: Statements;
  readonly codec: RecordCodec;
  readonly committer: Committer;
  readonly claims: Claims;
  readonly trimmer: Trimmer;
  /** Refuses a record that is too large. */
  readonly checkSize: (state: State<object>, bytes: number) => void;
}

/** A checkpoint that was written, to tell the next one's difference to it. */
interface Written {
  readonly base: Base;
  /** The sequence of the last snapshot. */
  readonly snapshot: number;
}

/** Where a run must be, and what it then gets. */
interface Place extends Saved {
  readonly expected: number;
  readonly previous: string;
  readonly parentId: string;
  readonly keep: number;
}

/** Where a run is. */
interface Position {
  readonly sequence: number;
  readonly checkpointId: string;
  readonly epoch: number;
  /** The id of the checkpoint that was asked for. */
  readonly found: string;
}

/** Writes the checkpoints of runs. */
export class PostgresWriter {
  readonly #settings: WriterSettings;
  /** The States that were saved, each with its record, for as long as somebody builds on it. */
  readonly #written = new WeakMap<Saved, Written>();
  /** The newest checkpoint of its run that a State was saved as, or loaded beside. */
  readonly #heads = new WeakMap<Saved, string>();
  /** The checkpoints of a run that may have been saved, although nobody was told so. */
  readonly #unsure = new Map<string, Set<string>>();
  /** Makes the ids of this store's checkpoints different from any other's. */
  readonly #id = v7();
  #saves = 0;

  constructor(settings: WriterSettings) {
    this.#settings = settings;
  }

  /** Remembers which checkpoint was the newest of its run when a State was loaded. */
  loaded<D extends object>(state: State<D>, head: string): void {
    this.#heads.set(State.recordOf(state), head);
  }

  /**
   * Saves a State as the next of its run.
   *
   * @throws CheckpointConflictError when the run is not where the State thinks, or was claimed by another.
   */
  async save<D extends object>(state: State<D>, keep: number): Promise<State<D>> {
    const record = State.recordOf(state);
    const { runId, sequence: expected } = state;
    const place = { expected, previous: this.#heads.get(record) ?? "", keep };
    const saved = await this.#write(state, this.#next(state, place), record);
    if (!("epoch" in saved)) return saved;
    // What could not be known then is known now: that save is in the store, and this one goes after it.
    if (saved.sequence === expected + 1 && this.#unsure.get(runId)?.has(saved.checkpointId)) {
      const after = { expected: saved.sequence, previous: saved.checkpointId, keep };
      const again = await this.#write(state, this.#next(state, after), record);
      if (!("epoch" in again)) return again;
      throw this.#conflict(runId, saved.sequence, again);
    }
    throw this.#conflict(runId, expected, saved);
  }

  /**
   * Writes a State as the checkpoint that it carries, after the run's newest.
   *
   * @param after - the record that was restored before it, to write only what is different.
   * @throws CheckpointConflictError when the run is there, or has changed since that.
   */
  async restore<D extends object>(
    state: State<D>,
    parentId: string,
    after: Saved | undefined,
  ): Promise<State<D>> {
    const { checkpointId, sequence, runId } = state;
    const { sequence: expected, checkpointId: previous } = after ?? {
      sequence: 0,
      checkpointId: "",
    };
    const keep = Number.POSITIVE_INFINITY;
    const place = { checkpointId, sequence, expected, previous, parentId, keep };
    const saved = await this.#write(state, place, after);
    if (!("epoch" in saved)) return saved;
    throw this.#conflict(runId, expected, saved);
  }

  #next<D extends object>(
    { checkpointId: parentId }: State<D>,
    at: Pick<Place, "expected" | "previous" | "keep">,
  ): Place {
    const checkpointId = `${this.#id}.${++this.#saves}`;
    return { ...at, checkpointId, sequence: at.expected + 1, parentId };
  }

  /** The State as it was saved, or where the run is when that is elsewhere. */
  async #write<D extends object>(
    state: State<D>,
    place: Place,
    after: Saved | undefined,
  ): Promise<State<D> | Position> {
    const { codec, committer, claims, checkSize, trimmer } = this.#settings;
    const { runId } = state;
    const { checkpointId, sequence, keep } = place;
    const before = after && this.#written.get(after);
    const encoding = codec.encode(state, place, before?.base);
    const { kind, line, base } = encoding instanceof Promise ? await encoding : encoding;
    const bytes = line.length;
    checkSize(state as unknown as State<object>, bytes);
    const snapshot = kind === "patch" ? (before?.snapshot ?? sequence) : sequence;
    const held = claims.held(runId);
    const at = performance.now();
    const row: SaveRow = {
      runId,
      expected: place.expected,
      sequence,
      previous: toColumn(place.previous),
      checkpointId: toColumn(checkpointId),
      parentId: toColumn(place.parentId),
      graph: toColumn(state.graph?.name ?? ""),
      version: state.graph?.version ?? 0,
      status: state.status,
      node: toColumn(state.checkpointNode),
      step: state.step,
      timestamp: toColumn(state.timestamp),
      reason: toColumn(state.reason),
      firstKept: Number.isFinite(keep) ? sequence - keep + 1 : 0,
      base: snapshot,
      bytes,
      body: line.toString(),
      epoch: held?.epoch ?? null,
      ttl: held?.ttl ?? null,
    };
    const elsewhere = await this.#commit(row, () => committer.save(row));
    if (elsewhere !== undefined) return elsewhere;
    held?.renewed(at);
    this.#unsure.delete(runId);
    const saved: Saved = { checkpointId, sequence, bytes };
    this.#written.set(saved, { base, snapshot });
    this.#heads.set(saved, checkpointId);
    trimmer.saved(row);
    return state.savedAs(saved);
  }

  /** Where the run is when it was not saved; `undefined` when it was. */
  async #commit(
    { runId, sequence, checkpointId }: SaveRow,
    commit: () => Promise<boolean>,
  ): Promise<Position | undefined> {
    const { connection } = this.#settings;
    const { retries } = connection;
    try {
      if (await commit()) return undefined;
      const wasRetried = connection.retries > retries;
      const position = await this.#where(runId, sequence);
      // It was sent twice, because the answer to the first was lost.
      return wasRetried && position.found === checkpointId ? undefined : position;
    } catch (error) {
      if (isUnsure(error)) {
        const unsure = this.#unsure.get(runId) ?? new Set();
        this.#unsure.set(runId, unsure.add(checkpointId));
      }
      throw error;
    }
  }

  async #where(runId: string, sequence: number): Promise<Position> {
    const { connection, statements } = this.#settings;
    const [row] = await connection.query(statements.where, [runId, sequence]);
    return {
      sequence: Number(row?.sequence ?? 0),
      checkpointId: String(row?.checkpoint_id ?? ""),
      epoch: Number(row?.epoch ?? 0),
      found: String(row?.found ?? ""),
    };
  }

  #conflict(runId: string, expected: number, at: Position): CheckpointConflictError {
    const error = new CheckpointConflictError(runId, expected, at.sequence);
    if (expected === at.sequence) {
      this.#settings.claims.check(runId, at.epoch, at.sequence);
      error.message = `run ${show(runId)} was deleted and started again: this State builds on another checkpoint ${expected}`;
    }
    return error;
  }
}
