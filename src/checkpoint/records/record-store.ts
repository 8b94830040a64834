import { isoNow } from "../../clock.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  isWaymarkError,
  messageOf,
  show,
} from "../../errors.js";
import { type GraphTopology, parseTopology } from "../../graph/description.js";
import { type Check, checkOptions, checkRunId, integer, string, text } from "../../options.js";
import { newId } from "../../random.js";
import { listedOf, type Saved } from "../../state/fields.js";
import { recordOf, type State } from "../../state/state.js";
import { warn } from "../../warnings.js";
import {
  checkAt,
  checkFilter,
  checkImport,
  checkKeep,
  checkRetention,
  checkSave,
  DEFAULT_KEEP,
  type KeepRule,
} from "../arguments.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  type ClaimHolder,
  type ClaimOptions,
  DEFAULT_WARN_BYTES,
  type ExportedCheckpoint,
  type Finding,
  type HistoryEntry,
  isNewest,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
  sizeWarning,
} from "../store.js";
import {
  type After,
  BackendError,
  type Chain,
  claimLost,
  type Head,
  type RecordBackend,
  type Removal,
} from "./backend.js";
import { type Base, bytesOf, type Encoded, RecordCodec, type RecordPlace } from "./codec.js";
import { search } from "./search.js";
import { type Emit, keptEntries, Upkeep } from "./upkeep.js";
import { verifyRun } from "./verify.js";

/** The options that all stores of records share. */
export interface RecordStoreOptions {
  /**
   * The number of newest completed steps of each run to keep; at least 2, 5 by default, `Infinity` for all. The newest
   * checkpoint of each kept step stays, and the newest progress save of an unfinished node.
   */
  readonly keep?: number;
  /** Which runs to remove, in the background, about once an hour while runs are saved; none by default. */
  readonly retention?: Retention;
  /** The largest record of a checkpoint, in bytes; a save of a larger one fails. 100 MB by default. */
  readonly maxBytes?: number;
  /** A record with more bytes than this emits a `checkpoint.warning` event. 500 KB by default. */
  readonly warnBytes?: number;
  /** Compresses, encrypts and redacts checkpoints; see {@link CodecOptions}. */
  readonly codec?: CodecOptions;
}

/** What a store configures in `RecordStore`, in addition to its user's options. */
export interface RecordStoreSettings extends RecordStoreOptions {
  /** The largest number of checkpoints of a run from one snapshot to the next; 1 makes each a snapshot. */
  readonly snapshotEvery: number;
  /**
   * The number of saves of a run after which checkpoints that are no longer kept are removed, sooner if they are large;
   * 32 by default.
   */
  readonly discardEvery?: number;
}

/** The checks of {@link RecordStoreOptions}. */
export const recordStoreChecks: Readonly<Record<keyof RecordStoreOptions, Check>> = {
  keep: checkKeep,
  retention: (_, value) => checkRetention(value as Retention),
  maxBytes: integer(1),
  warnBytes: integer(1, true),
  // The codec validates its own options: a value given here by mistake may be a key, and must not be shown.
  codec: () => {},
};

/** The same of {@link RecordStoreSettings}. */
const checks: Readonly<Record<keyof RecordStoreSettings, Check>> = {
  ...recordStoreChecks,
  snapshotEvery: integer(1, true),
  discardEvery: integer(1, true),
};

const KB = 1024;

/** How often a save is retried if the run is at a checkpoint that this store can build on. */
const ATTEMPTS = 5;

/** Where a State comes from, for as long as it is in use. */
interface Origin {
  /** The newest checkpoint of its run when it was saved or loaded. */
  readonly head: string;
  /** The base for the next patch; `undefined` for a State that was loaded. */
  readonly base: Base | undefined;
}

/** A State whose save may have succeeded: what it builds on, and when its run began. */
type UnsureSave = Pick<State<object>, "sequence" | "startedAt">;

/**
 * Stores States as records: everything that stores have in common, on top of a {@link RecordBackend}. Each save is one
 * record, a snapshot or the changes since the one before, with its SHA-256. Extend it to write a store of your own;
 * `examples/custom-store` is a complete one.
 *
 * @example
 * ```ts
 * import { type RecordBackend, RecordStore, type RecordStoreOptions } from "waymark/stores";
 *
 * class MyStore extends RecordStore {
 *   constructor(backend: RecordBackend, options: RecordStoreOptions = {}) {
 *     super(backend, { ...options, snapshotEvery: 64 });
 *   }
 * }
 * console.log(MyStore.prototype instanceof RecordStore); // true
 * ```
 */
export class RecordStore implements CheckpointStore {
  readonly #backend: RecordBackend;
  readonly #codec: RecordCodec;
  readonly #keep: number;
  readonly #maxBytes: number;
  readonly #warnBytes: number;
  readonly #upkeep: Upkeep;
  readonly #origins = new WeakMap<Saved, Origin>();
  /** The fingerprints of the graphs that the store already has. */
  readonly #graphs = new Set<string>();
  /** For each run, the checkpoints that may have been saved although their save failed, by id. */
  readonly #unsure = new Map<string, Map<string, UnsureSave>>();
  /** Makes the checkpoint ids of this store unique. */
  #id: string | undefined;
  #saves = 0;

  /** @throws ConfigError if an option is invalid. */
  protected constructor(backend: RecordBackend, settings: RecordStoreSettings) {
    for (const [name, check] of Object.entries(checks)) {
      const value: unknown = Reflect.get(settings, name);
      if (value !== undefined) check(name, value);
    }
    this.#backend = backend;
    this.#codec = new RecordCodec(settings.codec, settings.snapshotEvery);
    this.#keep = settings.keep ?? DEFAULT_KEEP;
    this.#maxBytes = settings.maxBytes ?? 100 * KB * KB;
    this.#warnBytes = settings.warnBytes ?? DEFAULT_WARN_BYTES;
    this.#upkeep = new Upkeep(backend, settings.retention, settings.discardEvery ?? 32);
  }

  /**
   * Saves a State as the next checkpoint of its run.
   *
   * @throws CheckpointConflictError if the run is no longer at the State's sequence.
   * @throws CheckpointSaveError if it is larger than `maxBytes`, or the store fails; earlier checkpoints are
   *   unaffected.
   * @throws SerializationError if the data can't be stored exactly.
   */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    const { keep = this.#keep, keepPerPhase, emit } = options;
    const origin = recordOf(state).saved;
    let after = this.#known(origin) ?? (await this.#locate(state));
    for (let attempt = 1; ; attempt++) {
      const place: RecordPlace = {
        checkpointId: this.#newId(),
        sequence: after.sequence + 1,
        savedAt: isoNow(),
        parentId: state.checkpointId,
        previous: after.checkpointId ?? "",
        keep,
        keepPerPhase,
      };
      const saved = await this.#write(state, place, after, origin);
      if (!isHead(saved)) {
        this.#afterSave(saved, place, emit);
        return saved;
      }
      const next = attempt < ATTEMPTS ? await this.#buildable(state, saved) : undefined;
      if (next === undefined) throw conflict(state.runId, after, saved);
      after = next;
    }
  }

  /**
   * Returns the newest intact State of a run, or the one selected by `at`. A corrupt checkpoint is set aside with a
   * `checkpoint.quarantine` event, and the next older one is used.
   *
   * @throws CheckpointNotFoundError if there is none.
   * @throws CheckpointCorruptionError, listing them, if all are corrupt.
   */
  async load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at, context);
    const [backend, codec] = [this.#backend, this.#codec];
    const { state, chain } = await search<D>({ backend, codec, runId, at, context });
    // The next save goes after everything that was ever there, including what is corrupt.
    return this.#loaded(state, chain, isNewest(at) ? chain.head.sequence : state.sequence);
  }

  /** Removes a run and its history durably. Does nothing if there is no such run. */
  async delete(runId: string): Promise<void> {
    checkRunId(runId);
    this.#upkeep.forget(runId);
    await this.#remove({ runId });
  }

  /** The ids of all runs; {@link RecordStore.runs} returns them page by page. */
  async list(): Promise<string[]> {
    return this.#backend.list();
  }

  /** The run that a checkpoint belongs to. */
  async find(checkpointId: string): Promise<string | undefined> {
    string("checkpointId", checkpointId);
    const runId = await this.#backend.find(checkpointId);
    if (runId === undefined) return undefined;
    // A checkpoint that is no longer kept may not be removed yet, and can't be loaded.
    const entries = await keptEntries(this.#backend, runId);
    return entries.some(({ header }) => header?.checkpointId === checkpointId) ? runId : undefined;
  }

  /** The checkpoints of a run, newest first. Reads only headers, and verifies nothing. */
  async history(runId: string): Promise<HistoryEntry[]> {
    const entries = await keptEntries(this.#backend, checkRunId(runId));
    return entries.flatMap(({ header, bytes }) => {
      if (header === undefined) return [];
      const { parentId, unfinished = false } = header;
      return [listedOf(header, "history", { parentId, unfinished, bytes })];
    });
  }

  /** The runs that match a filter, most recently saved first. */
  async runs(filter: RunFilter = {}): Promise<RunSummary[]> {
    checkFilter(filter);
    const found = await this.#backend.runs(filter);
    return found.map(({ sequence: _sequence, ...run }) => run);
  }

  /** The ids of the runs that `runs` leaves out because nothing of them can be read. */
  async unreadable(): Promise<string[]> {
    return this.#backend.unreadable?.() ?? [];
  }

  /** Removes old runs, except those that are claimed or were saved to meanwhile. */
  async prune(retention: Retention): Promise<string[]> {
    checkRetention(retention);
    return this.#upkeep.prune(retention);
  }

  /** Claims a run for this process; `undefined` if a live process holds it. */
  async claim(runId: string, options: ClaimOptions = {}): Promise<Claim | undefined> {
    checkOptions("options", options, { ttl: integer(1) });
    return this.#backend.claim(checkRunId(runId), options.ttl);
  }

  /** Who holds a run; `undefined` if nobody does. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#backend.holder(checkRunId(runId));
  }

  /** Reads every checkpoint of a run, or of all runs, and yields what is wrong. Changes nothing. */
  async *verify(runId?: string): AsyncGenerator<Finding> {
    if (runId === undefined) yield* this.#backend.verify?.() ?? [];
    const runIds = runId === undefined ? await this.#backend.list() : [checkRunId(runId)];
    for (const one of runIds) {
      try {
        yield* verifyRun(this.#backend, this.#codec, one);
      } catch (error) {
        // Damage around the records of one run leaves the other runs readable.
        if (runId !== undefined || !isWaymarkError(error, "CHECKPOINT_CORRUPT")) throw error;
        const { expected, actual } = error;
        yield { runId: one, sequence: 0, problem: "unreadable", expected, actual };
      }
    }
  }

  /** Saves the topology of a graph, once per fingerprint. */
  async saveTopology(topology: GraphTopology): Promise<void> {
    const { fingerprint } = topology;
    if (this.#graphs.has(fingerprint)) return;
    // Added before the save, so that only one of many runs that start at once saves it.
    this.#graphs.add(fingerprint);
    try {
      await this.#backend.saveGraph(fingerprint, JSON.stringify(topology));
    } catch (error) {
      this.#graphs.delete(fingerprint);
      throw error;
    }
  }

  /** The topology of the graph with this fingerprint; `undefined` if the store does not have it. */
  async topology(fingerprint: string): Promise<GraphTopology | undefined> {
    text("fingerprint", fingerprint);
    return parseTopology((await this.#backend.graph(fingerprint)) ?? "");
  }

  /** All kept checkpoints of a run, oldest first. */
  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    for (const { checkpointId, parentId } of (await this.history(runId)).reverse()) {
      yield { state: await this.load<object>(runId, { checkpointId }), parentId };
    }
  }

  /**
   * Imports the checkpoints that another store exported. If it fails, none of them stays, because part of a
   * run would be taken for all of it. A process that is killed leaves that part behind: delete the run then.
   *
   * @throws CheckpointConflictError if the run exists already.
   */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    let last: State<object> | undefined;
    try {
      for await (const { state, parentId } of checkImport(checkpoints)) {
        last = await this.#add({ state, parentId }, last, { keep: Number.POSITIVE_INFINITY });
      }
    } catch (error) {
      if (last === undefined) throw error;
      const { runId, sequence } = last;
      await this.#remove({ runId, sequence }).catch(() => {});
      throw error;
    }
  }

  /**
   * Adds the next checkpoint of a run as another store saved it.
   *
   * @param after - the checkpoint before it, as this store has it; `undefined` for the first.
   * @throws CheckpointConflictError if that is not the newest here.
   * @internal
   */
  async append(
    checkpoint: ExportedCheckpoint,
    after: State<object> | undefined,
    options: SaveOptions,
  ): Promise<State<object>> {
    const { keep = this.#keep, keepPerPhase, emit } = options;
    const rule = { keep, keepPerPhase };
    const written = await this.#add(checkpoint, after, rule);
    this.#afterSave(written, rule, emit);
    return written;
  }

  /** Finishes background work, and closes files and connections. */
  async close(): Promise<void> {
    await this.#upkeep.settled();
    await this.#backend.close();
  }

  /** Writes a checkpoint with the id, the sequence and the time that it has. */
  async #add(
    { state, parentId }: ExportedCheckpoint,
    last: State<object> | undefined,
    rule: KeepRule,
  ): Promise<State<object>> {
    const { checkpointId, sequence, savedAt } = state;
    const after = last ?? { sequence: 0, checkpointId: "" };
    const saved = { checkpointId, sequence, savedAt: savedAt || isoNow() };
    const place = { ...saved, parentId, previous: after.checkpointId, ...rule };
    const written = await this.#write(state, place, after, last && recordOf(last).saved);
    if (isHead(written)) throw conflict(state.runId, after, written);
    return written;
  }

  /** The checkpoint to append after, for a State whose origin is known. */
  #known(saved: Saved): After | undefined {
    if (saved.sequence === 0) return { sequence: 0, checkpointId: "" };
    const origin = this.#origins.get(saved);
    return origin && { sequence: saved.sequence, checkpointId: origin.head };
  }

  /**
   * The same for a State of which only its own checkpoint is known. The run must be at its sequence and must
   * not be a later run with the same id.
   */
  async #locate<D extends object>({ runId, sequence, checkpointId }: State<D>): Promise<After> {
    const entries = await this.#backend.headers(runId);
    const newest = entries[0];
    const isOfRun = entries.some(
      ({ header, setAside }) => setAside || (header?.checkpointId ?? checkpointId) === checkpointId,
    );
    if (newest?.sequence !== sequence || !isOfRun) {
      const head = { sequence: newest?.sequence ?? 0, checkpointId: "" };
      throw conflict(runId, { sequence, checkpointId }, head);
    }
    return { sequence, checkpointId: newest.header?.checkpointId };
  }

  /**
   * The checkpoint to append after instead if the run is not at the State's sequence; `undefined` if that
   * would overwrite another writer's work.
   */
  async #buildable<D extends object>(
    { runId, sequence, startedAt }: State<D>,
    head: Head,
  ): Promise<After | undefined> {
    if (head.claimedBy !== undefined) return undefined;
    const unsure = this.#unsure.get(runId)?.get(head.checkpointId);
    // An earlier save of this State, whose outcome was unknown, turns out to be in the store: this one goes
    // after it. Not for the first State of another run with this id: another process may be working on the
    // one in the store.
    if (unsure?.sequence === sequence && unsure.startedAt === startedAt) return head;
    if (sequence > 0 || head.sequence === 0) return undefined;
    // A run that has only records that were set aside may start over.
    const chain = await this.#backend.chain(runId, { below: Number.POSITIVE_INFINITY });
    return chain?.records.length === 0 ? chain.head : undefined;
  }

  /**
   * Returns the State as saved, or the run's head if that is not where the State builds on.
   *
   * @param origin - what the State builds on, as it was saved.
   */
  async #write<D extends object>(
    state: State<D>,
    place: RecordPlace,
    after: After,
    origin: Saved | undefined,
  ): Promise<State<D> | Head> {
    const { runId } = state;
    const { checkpointId, sequence, savedAt, keep } = place;
    const from = origin && this.#origins.get(origin)?.base;
    let made: Encoded | undefined;
    const take = (encoded: Encoded): Encoded["record"] => {
      made = encoded;
      this.#checkSize(state, encoded.record.bytes);
      return encoded.record;
    };
    try {
      const elsewhere = await this.#backend.append(runId, after, () => {
        const encoding = this.#codec.encode(state, place, from);
        return encoding instanceof Promise ? encoding.then(take) : take(encoding);
      });
      // The run is at its own record: the response to a first attempt was lost.
      if (elsewhere !== undefined && elsewhere.checkpointId !== checkpointId) return elsewhere;
    } catch (error) {
      throw this.#refusal(state, error, made === undefined ? undefined : checkpointId);
    }
    if (this.#unsure.size > 0) this.#unsure.delete(runId);
    const saved: Saved = { checkpointId, sequence, savedAt, bytes: made?.record.bytes };
    this.#origins.set(saved, { head: checkpointId, base: made?.base });
    if (made !== undefined && Number.isFinite(keep)) this.#upkeep.note(runId, made.record);
    return state.savedAs(saved);
  }

  /**
   * The error of a failed save: the error itself if it explains the problem, otherwise one that adds the
   * store's location.
   */
  #refusal<D extends object>(state: State<D>, error: unknown, checkpointId?: string): unknown {
    const isOfStore = error instanceof BackendError;
    // A corrupt record is in the way of this save; nobody asked to load it.
    const explains = isWaymarkError(error) && !isWaymarkError(error, "CHECKPOINT_CORRUPT");
    if (explains && !isOfStore) return error;
    const unsure = checkpointId !== undefined && (isOfStore ? error.unsure : true);
    const { runId, sequence, startedAt } = state;
    if (unsure) {
      const ids = this.#unsure.get(runId) ?? new Map<string, UnsureSave>();
      this.#unsure.set(runId, ids.set(checkpointId, { sequence, startedAt }));
    }
    return this.#unsaved(state, messageOf(error), unsure, error);
  }

  #checkSize<D extends object>(state: State<D>, bytes: number): void {
    if (bytes <= this.#maxBytes) return;
    const problem = `the checkpoint has ${bytes} bytes, more than maxBytes (${this.#maxBytes})`;
    throw this.#unsaved(state, `${problem}: keep less in the State, or raise it`, false);
  }

  #afterSave<D extends object>(saved: State<D>, rule: KeepRule, emit: Emit): void {
    const { runId, checkpointNode: node } = saved;
    const message = sizeWarning(saved, this.#warnBytes);
    if (message !== undefined) warn(runId, { kind: "size", node, message }, emit);
    this.#upkeep.afterSave(saved, rule, emit);
  }

  #unsaved<D extends object>(
    state: State<D>,
    problem: string,
    unsure: boolean,
    cause?: unknown,
  ): CheckpointSaveError {
    const { runId, checkpointNode: nodeName } = state;
    const { place } = this.#backend;
    const outcome = unsure ? "may not have been saved" : "was not saved";
    const what = `the checkpoint of run ${show(runId)} ${outcome} in ${place}`;
    const reason = cause instanceof BackendError ? cause.cause : cause;
    const options = { nodeName, state, path: [], cause: reason };
    return new CheckpointSaveError(`${what}: ${problem}`, options);
  }

  #loaded<D extends object>(state: State<D>, { head, records }: Chain, sequence: number): State<D> {
    const { checkpointId, savedAt } = state;
    const last = records.at(-1);
    const bytes = last && bytesOf(last);
    const saved: Saved = { checkpointId, sequence, savedAt, bytes };
    this.#origins.set(saved, { head: head.checkpointId, base: undefined });
    return state.savedAs(saved);
  }

  #remove(run: Removal): Promise<unknown> {
    return this.#backend.remove([run], { unclaimed: false, dryRun: false });
  }

  #newId(): string {
    this.#id ??= newId();
    return `${this.#id}.${++this.#saves}`;
  }
}

function isHead(value: object): value is Head {
  return !("runId" in value);
}

function conflict(runId: string, after: After, head: Head): CheckpointConflictError {
  if (head.claimedBy !== undefined) {
    return claimLost(runId, after.sequence, head.sequence, head.claimedBy, "write to it");
  }
  const isOther = after.sequence === head.sequence && after.sequence > 0;
  return new CheckpointConflictError(runId, after.sequence, head.sequence, {
    ...(isOther && {
      problem: `was deleted and started again: this State builds on another checkpoint ${after.sequence}`,
    }),
  });
}
