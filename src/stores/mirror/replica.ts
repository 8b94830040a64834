import { exportOf, historyOf } from "../../checkpoint/any-store.js";
import { RecordStore } from "../../checkpoint/records/record-store.js";
import {
  type CheckpointStore,
  type ExportedCheckpoint,
  opened,
  type SaveOptions,
} from "../../checkpoint/store.js";
import { inBackground, now } from "../../clock.js";
import { Mutex, mapLimit } from "../../concurrency.js";
import { CheckpointConflictError, ConfigError, isWaymarkError, messageOf } from "../../errors.js";
import { hasEnded } from "../../state/fields.js";
import type { State } from "../../state/state.js";

/** How far a replica is behind, as far as this process knows. */
export interface MirrorLag {
  /** The index of the replica, from 0. */
  readonly replica: number;
  /** How many saves of this process it does not have yet. */
  readonly saves: number;
  /** The runs that they belong to. */
  readonly runs: readonly string[];
  /** For how many milliseconds the oldest of them has been waiting; 0 for none. */
  readonly ms: number;
  /** Why the last copy failed; `undefined` if it did not. */
  readonly error: string | undefined;
}

/** How long to wait before a failed copy is retried, in milliseconds: the first and the longest wait. */
const FIRST_RETRY = 500;
const LONGEST_RETRY = 30_000;

/** How many runs to copy or compare at once. */
export const AT_ONCE = 8;

/** For how many runs to keep the newest copy in memory; other runs are compared again when they are saved. */
const REMEMBERED = 512;

/** What is still to be copied for one run. */
interface Waiting {
  /** The saves, oldest first. */
  readonly saves: { readonly checkpoint: ExportedCheckpoint; readonly options: SaveOptions }[];
  /** How many there are, including those no longer held in memory. */
  count: number;
  /** The sequence of the newest one. */
  sequence: number;
  /** Whether the run was deleted before those saves. */
  isDeleted: boolean;
  /** Whether the replica may lack earlier checkpoints. */
  isBehind: boolean;
  readonly since: number;
}

/** One store that a mirror copies to. */
export class Replica {
  readonly store: CheckpointStore;
  readonly #primary: CheckpointStore;
  readonly #onError: (error: unknown, runId: string) => void;
  readonly #waiting = new Map<string, Waiting>();
  /** What is being copied. */
  readonly #copying = new Map<string, Waiting>();
  readonly #mutexes = new Map<string, Mutex>();
  /** The newest copy of runs that are being written, the least recently used first. */
  readonly #newest = new Map<string, State<object>>();
  #error: string | undefined;
  #delay = FIRST_RETRY;
  #cancelRetry: (() => void) | undefined;

  constructor(
    store: CheckpointStore,
    primary: CheckpointStore,
    onError: (error: unknown, runId: string) => void,
  ) {
    this.store = store;
    this.#primary = primary;
    this.#onError = onError;
  }

  /** Copies a save; resolves once that is done, or has failed and will be retried. */
  saved(checkpoint: ExportedCheckpoint, options: SaveOptions): Promise<void> {
    const { runId, sequence } = checkpoint.state;
    const waiting = this.#wait(runId);
    waiting.count++;
    waiting.sequence = sequence;
    if (!waiting.isBehind) waiting.saves.push({ checkpoint, options });
    return this.#workUnlessAway(runId, waiting);
  }

  deleted(runId: string): Promise<void> {
    const waiting = this.#wait(runId);
    Object.assign(waiting, { count: 0, sequence: 0, isDeleted: true, isBehind: false });
    waiting.saves.length = 0;
    return this.#workUnlessAway(runId, waiting);
  }

  /** Compares a run with the primary's and copies what is missing. */
  compare(runId: string): Promise<void> {
    const waiting = this.#wait(runId);
    waiting.isBehind = true;
    return this.#workUnlessAway(runId, waiting);
  }

  /** Copies everything that is pending now. */
  async settle(): Promise<void> {
    this.stop();
    await mapLimit(
      [...new Set([...this.#mutexes.keys(), ...this.#waiting.keys()])],
      AT_ONCE,
      (id) => this.#work(id),
    );
  }

  lag(replica: number): MirrorLag {
    const all = [...this.#copying, ...this.#waiting];
    const ms = all.length === 0 ? 0 : now() - Math.min(...all.map(([, { since }]) => since));
    const saves = all.reduce((sum, [, { count }]) => sum + count, 0);
    const runs = [...new Set(all.map(([runId]) => runId))];
    return { replica, saves, runs, ms, error: this.#error };
  }

  /** The newest sequence of each run that has something pending. */
  get known(): ReadonlyMap<string, number> {
    return new Map([...this.#waiting].map(([runId, { sequence }]) => [runId, sequence]));
  }

  /** Cancels the scheduled retry. */
  stop(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
  }

  #wait(runId: string): Waiting {
    const found = this.#waiting.get(runId);
    if (found !== undefined) return found;
    const nothing = { count: 0, sequence: 0, isDeleted: false, isBehind: false };
    const waiting: Waiting = { ...nothing, saves: [], since: now() };
    this.#waiting.set(runId, waiting);
    return waiting;
  }

  /** While a replica can't be reached, saves neither wait for it nor stay in memory; comparing finds them later. */
  async #workUnlessAway(runId: string, waiting: Waiting): Promise<void> {
    if (this.#cancelRetry === undefined) return this.#work(runId);
    waiting.isBehind = true;
    waiting.saves.length = 0;
  }

  /** Copies what is pending for a run, one copy at a time, so that each finds the one before. */
  async #work(runId: string): Promise<void> {
    const mutex = this.#mutexes.get(runId) ?? new Mutex();
    this.#mutexes.set(runId, mutex);
    await mutex.run(() => this.#copyWaiting(runId));
    if (mutex.idle) this.#mutexes.delete(runId);
  }

  async #copyWaiting(runId: string): Promise<void> {
    const waiting = this.#waiting.get(runId);
    if (waiting === undefined) return;
    this.#waiting.delete(runId);
    this.#copying.set(runId, waiting);
    try {
      await this.#copy(runId, waiting);
      this.#error = undefined;
      this.#delay = FIRST_RETRY;
    } catch (error) {
      this.#newest.delete(runId);
      // Saves that arrived meanwhile are newer.
      const later = this.#waiting.get(runId) ?? { count: 0, sequence: 0, isDeleted: false };
      this.#waiting.set(runId, {
        saves: [],
        count: waiting.count + later.count,
        sequence: Math.max(waiting.sequence, later.sequence),
        isDeleted: waiting.isDeleted || later.isDeleted,
        isBehind: true,
        since: waiting.since,
      });
      this.#error = messageOf(error);
      this.#retryLater();
      this.#onError(error, runId);
    } finally {
      this.#copying.delete(runId);
    }
  }

  #retryLater(): void {
    if (this.#cancelRetry !== undefined) return;
    this.#cancelRetry = inBackground(this.#delay, () => this.settle());
    this.#delay = Math.min(this.#delay * 2, LONGEST_RETRY);
  }

  async #copy(runId: string, { saves, isDeleted, isBehind }: Waiting): Promise<void> {
    const store = await opened(this.store);
    if (isDeleted) {
      this.#newest.delete(runId);
      await store.delete(runId);
    }
    if (isBehind || !(store instanceof RecordStore)) return this.#copyMissing(store, runId);
    for (const { checkpoint, options } of saves) {
      const { sequence } = checkpoint.state;
      const known = this.#newest.get(runId);
      if (known !== undefined && known.sequence >= sequence) continue;
      const isNext = known !== undefined && known.sequence === sequence - 1;
      const isFirst = sequence === 1 && (await historyOf(store, runId)).length === 0;
      // Another process wrote to the copy, or it could not be reached for a while.
      if (!isNext && !isFirst) return this.#copyMissing(store, runId);
      try {
        this.#remember(await store.append(checkpoint, known, options));
      } catch (error) {
        if (!isWaymarkError(error, "CHECKPOINT_CONFLICT")) throw error;
        return this.#copyMissing(store, runId);
      }
    }
  }

  /**
   * Brings a run up to date with the primary: appends the later checkpoints, or imports the whole run if the
   * copy's newest is no longer kept.
   */
  async #copyMissing(store: CheckpointStore, runId: string): Promise<void> {
    this.#newest.delete(runId);
    const theirs = await historyOf(this.#primary, runId);
    const [newest] = theirs;
    if (newest === undefined) return;
    const [copied] = await historyOf(store, runId);
    const common = theirs.find(({ checkpointId }) => checkpointId === copied?.checkpointId);
    const oldest = theirs.at(-1)?.sequence ?? 0;
    if (copied !== undefined && common === undefined && copied.sequence >= oldest) {
      throw diverged(runId, copied.sequence, newest.sequence);
    }
    // A store that is opened on first use may turn out not to have it.
    if (store.import === undefined) throw new ConfigError("replica", "has no import");
    // Replaced if the primary no longer keeps any checkpoint of the copy, or nothing can be appended to it.
    if (common === undefined || (common !== newest && !(store instanceof RecordStore))) {
      if (copied !== undefined) await store.delete(runId);
      await store.import(exportOf(this.#primary, runId));
    }
    if (!(store instanceof RecordStore)) return;
    let last = await store.load<object>(runId);
    for await (const checkpoint of exportOf(this.#primary, runId)) {
      if (checkpoint.state.sequence <= last.sequence) continue;
      last = await store.append(checkpoint, last, { keep: Number.POSITIVE_INFINITY });
    }
    this.#remember(last);
  }

  #remember(copy: State<object>): void {
    const { runId } = copy;
    this.#newest.delete(runId);
    if (hasEnded(copy)) return;
    this.#newest.set(runId, copy);
    const [oldest] = this.#newest.keys();
    if (this.#newest.size > REMEMBERED && oldest !== undefined) this.#newest.delete(oldest);
  }
}

function diverged(runId: string, copied: number, newest: number): CheckpointConflictError {
  return new CheckpointConflictError(runId, copied, newest, {
    problem: `was continued in a replica: its checkpoint ${copied} is not the primary's; delete it there, or use that store`,
  });
}
