import {
  type After,
  BackendError,
  type Chain,
  type Head,
  type HeaderEntry,
  type NewRecord,
  type Removal,
  type RunEntry,
  runEntryOf,
  type StoredRecord,
} from "../../checkpoint/records/backend.js";
import { parseHeader, type RecordHeader } from "../../checkpoint/records/header.js";
import { holderOf, type Lease } from "../../stores/leases.js";
import type { Server } from "./network.js";
import type { StorageObserver } from "./storage.js";
import type { Process, World } from "./world.js";

/** A record in the database. */
interface Row {
  readonly record: NewRecord;
  content: string;
  isAside: boolean;
  /** Whether the power failed while it was written: no listing reads it. */
  isTorn: boolean;
}

/** A run in the database. */
interface RunRow {
  sequence: number;
  checkpointId: string;
  rows: Map<number, Row>;
  epoch: number;
  owner: string;
  /** When its lease ends, by the clock of the server. */
  until: number;
}

/** Faults of the database's own logic that a test plants. */
export interface DatabaseBugs {
  /** Saves don't check the claim. */
  readonly noFence?: boolean;
  /** A claim keeps the epoch of the previous one; in files, a process is not distinguished from its next life. */
  readonly noEpoch?: boolean;
  /** A save is acknowledged before the disk has it. */
  readonly earlyAcknowledgement?: boolean;
}

/** A database server: its writes are on its disk only after a sync. */
export class Database implements Server {
  readonly #world: World;
  readonly #observer: StorageObserver;
  readonly #bugs: DatabaseBugs;
  readonly #runs = new Map<string, RunRow>();
  readonly #graphs = new Map<string, string>();
  /** Functions that undo each write that is not on the disk yet, oldest first. */
  #undo: { readonly back: () => void; readonly row?: Row }[] = [];
  #epochs = 0;
  isUp = true;
  isFull = false;
  generation = 0;

  constructor(world: World, observer: StorageObserver, bugs: DatabaseBugs) {
    this.#world = world;
    this.#observer = observer;
    this.#bugs = bugs;
  }

  sync(): void {
    this.#undo = [];
  }

  /** Cuts the power: the last `lost` unsynced writes are gone, and the newest that is left may be torn. */
  cutPower(lost: number, isTorn: boolean): void {
    const gone = this.#undo.splice(Math.max(this.#undo.length - lost, 0));
    for (const { back } of gone.reverse()) back();
    const row = this.#undo.at(-1)?.row;
    if (isTorn && row !== undefined) {
      row.isTorn = true;
      row.content = row.content.slice(0, row.content.length >> 1);
    }
    this.sync();
    this.generation++;
    this.isUp = false;
  }

  /** How many writes a power cut could undo. */
  get unsynced(): number {
    return this.#undo.length;
  }

  /** Damages the newest record of a run that has an older one to fall back to; returns the run, if there is one. */
  corrupt(pick: number): string | undefined {
    const runs = [...this.#runs.keys()].filter((runId) => this.#intact(runId).length > 1);
    const runId = runs[pick % runs.length];
    const row = runId === undefined ? undefined : this.#intact(runId)[0];
    if (row !== undefined) row.content = row.content.slice(1);
    return runId;
  }

  /** The newest record of a run that can be read, including everything it builds on. */
  newestWhole(runId: string): RecordHeader | undefined {
    return this.#intact(runId)[0]?.record.fields;
  }

  /** The records that can be read, newest first. */
  #intact(runId: string): Row[] {
    const rows = this.#rows(runId).reverse();
    const isWhole = (row: Row): boolean => !row.isAside && row.content === row.record.content;
    return rows.filter(({ record }) => {
      const chain = rows.filter(
        (row) => row.record.sequence >= record.base && row.record.sequence <= record.sequence,
      );
      return chain.length === record.sequence - record.base + 1 && chain.every(isWhole);
    });
  }

  /** Saves a record if the run is still at `after` and at the epoch of the lease, which is renewed. */
  append(
    runId: string,
    after: After,
    record: NewRecord,
    lease: Pick<Lease, "epoch" | "ttl"> | undefined,
    by: Process,
  ): Head | undefined {
    this.#checkSpace();
    const epoch = lease?.epoch ?? null;
    const run = this.#runs.get(runId) ?? newRun();
    const fits =
      run.sequence === after.sequence &&
      (after.checkpointId === undefined || run.checkpointId === after.checkpointId) &&
      (epoch === null || this.#bugs.noFence || run.epoch === epoch);
    if (!fits) {
      const head: Head = { sequence: run.sequence, checkpointId: run.checkpointId };
      const isTaken = epoch !== null && run.epoch !== epoch;
      return isTaken ? { ...head, claimedBy: holderOf(run.owner) } : head;
    }
    const { sequence, checkpointId } = run;
    const row: Row = { record, content: record.content, isAside: false, isTorn: false };
    this.#runs.set(runId, run);
    run.sequence = record.sequence;
    run.checkpointId = record.fields.checkpointId;
    run.rows.set(record.sequence, row);
    this.#undo.push({
      row,
      back: () => {
        Object.assign(run, { sequence, checkpointId });
        run.rows.delete(record.sequence);
      },
    });
    if (run.until !== RELEASED && run.epoch === epoch) {
      run.until = this.#world.time + (lease?.ttl ?? 0);
    }
    this.#observer.written(record.fields, by, epoch, run.until > this.#world.time);
    return undefined;
  }

  chain(runId: string, from: number, to: number): Chain | undefined {
    const run = this.#runs.get(runId);
    if (run === undefined || run.sequence === 0) return undefined;
    const rows = this.#rows(runId).filter(({ isAside }) => !isAside);
    const last = rows.findLast(({ record: { sequence } }) => sequence >= from && sequence <= to);
    const { base = 0, sequence = -1 } = last?.record ?? {};
    const records = rows.filter(
      ({ record: one }) => one.sequence >= base && one.sequence <= sequence,
    );
    const head = { sequence: run.sequence, checkpointId: run.checkpointId };
    return { head, records: records.map(storedOf) };
  }

  headers(runId: string): HeaderEntry[] {
    return this.#rows(runId)
      .reverse()
      .map(({ record: { sequence, bytes, header }, isAside }) => {
        return { sequence, bytes, header: parseHeader(header), setAside: isAside };
      });
  }

  records(runId: string, from: number, to: number): StoredRecord[] {
    return this.#rows(runId)
      .filter(({ isAside, record: { sequence } }) => !isAside && sequence >= from && sequence <= to)
      .map(storedOf);
  }

  setAside(runId: string, sequence: number): boolean {
    const row = this.#runs.get(runId)?.rows.get(sequence);
    if (row === undefined || row.isAside) return false;
    row.isAside = true;
    return true;
  }

  discard(runId: string, sequences: readonly number[]): void {
    const rows = this.#runs.get(runId)?.rows;
    for (const sequence of sequences) rows?.delete(sequence);
  }

  runs(): RunEntry[] {
    return [...this.#runs.keys()].flatMap((runId) => {
      const newest = this.#rows(runId).findLast(({ isAside, isTorn }) => !isAside && !isTorn);
      return newest === undefined ? [] : [runEntryOf(newest.record.fields, newest.record.sequence)];
    });
  }

  find(checkpointId: string): string | undefined {
    const isIt = ({ record, isAside }: Row): boolean =>
      !isAside && record.fields.checkpointId === checkpointId;
    return [...this.#runs.keys()].find((runId) => this.#rows(runId).some(isIt));
  }

  remove(runs: readonly Removal[], unclaimed: boolean, dryRun: boolean): string[] {
    const removable = runs.filter(({ runId, sequence }) => {
      const run = this.#runs.get(runId);
      if (run === undefined || (sequence ?? run.sequence) !== run.sequence) return false;
      return !(unclaimed && run.until > this.#world.time);
    });
    if (!dryRun) for (const { runId } of removable) this.#runs.delete(runId);
    return removable.map(({ runId }) => runId);
  }

  saveGraph(fingerprint: string, text: string): void {
    this.#checkSpace();
    if (!this.#graphs.has(fingerprint)) this.#graphs.set(fingerprint, text);
  }

  graph(fingerprint: string): string | undefined {
    return this.#graphs.get(fingerprint);
  }

  acquire(runId: string, owner: string, ttl: number, by: Process): number | undefined {
    const run = this.#runs.get(runId) ?? newRun();
    const { time } = this.#world;
    if (run.until > time && run.owner !== owner) return undefined;
    this.#runs.set(runId, run);
    const epoch = this.#bugs.noEpoch ? 1 : ++this.#epochs;
    Object.assign(run, { epoch, owner, until: time + ttl });
    this.#observer.claimed(runId, by, epoch);
    return epoch;
  }

  renew(runId: string, epoch: number, ttl: number): boolean {
    const run = this.#runs.get(runId);
    if (run?.epoch !== epoch || run.until === RELEASED) return false;
    run.until = this.#world.time + ttl;
    return true;
  }

  release(runId: string, epoch: number): void {
    const run = this.#runs.get(runId);
    if (run?.epoch !== epoch) return;
    run.until = RELEASED;
    this.#observer.released(runId, epoch);
  }

  /** The owner of a valid claim. */
  owner(runId: string): string | undefined {
    const run = this.#runs.get(runId);
    return run !== undefined && run.until > this.#world.time ? run.owner : undefined;
  }

  #rows(runId: string): Row[] {
    const { rows = new Map<number, Row>() } = this.#runs.get(runId) ?? {};
    return [...rows.values()].sort((a, b) => a.record.sequence - b.record.sequence);
  }

  #checkSpace(): void {
    if (!this.isFull) return;
    const problem = "no space left on the disk";
    throw new BackendError(problem, { unsure: false, cause: new Error(problem) });
  }
}

const RELEASED = -1;

function newRun(): RunRow {
  return { sequence: 0, checkpointId: "", rows: new Map(), epoch: 0, owner: "", until: RELEASED };
}

function storedOf({ record, content }: Row): StoredRecord {
  const { sequence, header, sha256 } = record;
  return { sequence, header, content, sha256 };
}
