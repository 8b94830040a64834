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
import { type Check, checkOptions, integer, text } from "../../options.js";
import { newId } from "../../random.js";
import { noMetadata, type Saved } from "../../state/record.js";
import { checkRunId } from "../../state/run-id.js";
import { recordOf, type State } from "../../state/state.js";
import {
  checkAt,
  checkpointId as checkCheckpointId,
  checkImport,
  checkSave,
} from "../arguments.js";
import {
  checkFilter,
  checkKeep,
  checkRetention,
  DEFAULT_KEEP,
  type KeepRule,
} from "../retention.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  type ClaimHolder,
  type ClaimOptions,
  type ExportedCheckpoint,
  type Finding,
  type HistoryEntry,
  isNewest,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
} from "../store.js";
import { type After, BackendError, type Chain, type Head, type RecordBackend } from "./backend.js";
import { type Base, type Encoded, RecordCodec } from "./codec.js";
import { type Emit, keptEntries, Search, warn } from "./search.js";
import { Upkeep } from "./upkeep.js";
import { verifyRun } from "./verify.js";

/** Options that every store with records has. */
export interface RecordStoreOptions {
  /**
   * How many completed steps of each run to keep, the newest; at least 2, 5 by default, `Infinity` for
   * all. Of each kept step the newest checkpoint stays, and of an unfinished node its newest progress save.
   */
  readonly keep?: number;
  /** Which runs to remove, in the background, about once an hour while runs are saved; none by default. */
  readonly retention?: Retention;
  /** The largest record of a checkpoint, in bytes; a larger one is refused. 100 MB by default. */
  readonly maxBytes?: number;
  /** A larger record, in bytes, emits a `checkpoint.warning` event. 500 KB by default. */
  readonly warnBytes?: number;
  /** Compresses, encrypts and redacts checkpoints; see {@link CodecOptions}. */
  readonly codec?: CodecOptions;
}

/** What a store says to `RecordStore` beside its user's options. */
export interface RecordStoreSettings extends RecordStoreOptions {
  /** At the latest, every so many checkpoints of a run are written whole; 1 for all of them. */
  readonly snapshotEvery: number;
  /** After so many checkpoints of a run those that are not kept are removed, unless they are large; 32 by default. */
  readonly discardEvery?: number;
}

/** The checks of {@link RecordStoreOptions}. */
export const recordStoreChecks: Readonly<Record<keyof RecordStoreOptions, Check>> = {
  keep: checkKeep,
  retention: (_, value) => checkRetention(value as Retention),
  maxBytes: integer(1),
  warnBytes: integer(1, true),
  // The codec checks itself: what stands here by mistake may be a key, and must not be shown.
  codec: () => {},
};

const KB = 1024;

/** How often a save is tried again when the run turns out to be somewhere that this store can build on. */
const ATTEMPTS = 5;

/** Where a State comes from, for as long as somebody builds on it. */
interface Origin {
  /** The newest checkpoint of its run when it was saved or loaded. */
  readonly head: string;
  /** What was written of it; unknown of one that was loaded. */
  readonly base: Base | undefined;
}

/** What a save has to know beside the State. */
interface Writing {
  readonly after: After;
  readonly origin: Saved | undefined;
  readonly rule: KeepRule;
  /** For an import: the checkpoint as it was; else it gets the next sequence and an id of its own. */
  readonly as?: Saved & { readonly parentId: string };
}

/**
 * Keeps States as records: all that stores have in common, over a {@link RecordBackend} that only keeps
 * them. Each save is one record, a snapshot or what changed since the one before, under its SHA-256.
 */
export class RecordStore implements CheckpointStore {
  readonly #backend: RecordBackend;
  readonly #codec: RecordCodec;
  readonly #keep: number;
  readonly #maxBytes: number;
  readonly #warnBytes: number;
  readonly #upkeep: Upkeep;
  readonly #origins = new WeakMap<Saved, Origin>();
  /** The fingerprints of the graphs that the store has. */
  readonly #graphs = new Set<string>();
  /** The checkpoints of a run that may have been saved although their save failed, and what each builds on. */
  readonly #unsure = new Map<string, Map<string, number>>();
  /** Makes the ids of this store's checkpoints different from any other's. */
  #id: string | undefined;
  #saves = 0;

  /** @throws ConfigError if a codec option is invalid. */
  protected constructor(backend: RecordBackend, settings: RecordStoreSettings) {
    this.#backend = backend;
    this.#codec = new RecordCodec(settings.codec, settings.snapshotEvery);
    this.#keep = settings.keep ?? DEFAULT_KEEP;
    this.#maxBytes = settings.maxBytes ?? 100 * KB * KB;
    this.#warnBytes = settings.warnBytes ?? 500 * KB;
    this.#upkeep = new Upkeep(backend, settings.retention, settings.discardEvery ?? 32);
  }

  /**
   * Saves a State as the next checkpoint of its run.
   *
   * @throws CheckpointConflictError if the run is no longer at the State's sequence.
   * @throws CheckpointSaveError if it is larger than `maxBytes`, or the store fails; the checkpoints
   *   before it are as they were.
   * @throws SerializationError if the data can't be kept exactly.
   */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    const { keep = this.#keep, keepPerPhase, emit } = options;
    const rule = { keep, keepPerPhase };
    const origin = recordOf(state).saved;
    let after = this.#known(origin) ?? (await this.#locate(state));
    for (let attempt = 1; ; attempt++) {
      const saved = await this.#write(state, { after, origin, rule });
      if (!isHead(saved)) {
        this.#afterSave(saved, rule, emit);
        return saved;
      }
      const next = attempt < ATTEMPTS ? await this.#buildable(state, saved) : undefined;
      if (next === undefined) throw conflict(state.runId, after, saved);
      after = next;
    }
  }

  /**
   * The newest State of a run that is whole, or the one asked for. A corrupt checkpoint is set aside
   * with a `checkpoint.quarantine` event, and the next older is used.
   *
   * @throws CheckpointNotFoundError if there is none.
   * @throws CheckpointCorruptionError that lists them if all are corrupt.
   */
  async load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at, context);
    const search = new Search(this.#backend, this.#codec, runId, at, context);
    const { state, chain } = await search.find<D>();
    // What comes next goes after all that was ever there, also after what is corrupt.
    return this.#loaded(state, chain, isNewest(at) ? chain.head.sequence : state.sequence);
  }

  /** Removes a run and its history for good; an absent run is fine. */
  async delete(runId: string): Promise<void> {
    checkRunId(runId);
    this.#upkeep.forget(runId);
    await this.#backend.remove([{ runId }], { unclaimed: false, dryRun: false });
  }

  /** The ids of all runs; {@link RecordStore.runs} gives them page by page. */
  async list(): Promise<string[]> {
    return this.#backend.list();
  }

  /** The run that a checkpoint belongs to. */
  async find(checkpointId: string): Promise<string | undefined> {
    checkCheckpointId("checkpointId", checkpointId);
    const runId = await this.#backend.find(checkpointId);
    if (runId === undefined) return undefined;
    // What is no longer kept may not be removed yet, and can't be loaded.
    const entries = await keptEntries(this.#backend, runId);
    return entries.some(({ header }) => header?.checkpointId === checkpointId) ? runId : undefined;
  }

  /** The checkpoints of a run, newest first. Only headers are read, and nothing is verified. */
  async history(runId: string): Promise<HistoryEntry[]> {
    const entries = await keptEntries(this.#backend, checkRunId(runId));
    return entries.flatMap(({ header, bytes }) => {
      if (header === undefined) return [];
      const { sequence, step, node, phase = "", status, timestamp, savedAt } = header;
      const { checkpointId, parentId, reason, unfinished = false, metadata = noMetadata } = header;
      const entry = { sequence, step, node, phase, status, timestamp, savedAt, checkpointId };
      return [{ ...entry, parentId, reason, unfinished, metadata, bytes }];
    });
  }

  /** The runs that fit a filter, the most recently saved first. */
  async runs(filter: RunFilter = {}): Promise<RunSummary[]> {
    checkFilter(filter);
    const found = await this.#backend.runs(filter);
    return found.map(({ sequence: _sequence, ...run }) => run);
  }

  /** Removes old runs; one that is claimed, or was saved to meanwhile, stays. */
  async prune(retention: Retention): Promise<string[]> {
    checkRetention(retention);
    return this.#upkeep.prune(retention);
  }

  /** Claims a run for this process; `undefined` if a living one has it. */
  async claim(runId: string, options: ClaimOptions = {}): Promise<Claim | undefined> {
    checkOptions("options", options, { ttl: integer(1) });
    return this.#backend.claim(checkRunId(runId), options.ttl);
  }

  /** Who has claimed a run; `undefined` if nobody has. */
  async holder(runId: string): Promise<ClaimHolder | undefined> {
    return this.#backend.holder(checkRunId(runId));
  }

  /** Reads every checkpoint of a run, or of all runs, and yields what is wrong; changes nothing. */
  async *verify(runId?: string): AsyncGenerator<Finding> {
    if (runId === undefined) {
      for await (const finding of this.#backend.verify?.() ?? []) yield finding;
    }
    const runIds = runId === undefined ? await this.#backend.list() : [checkRunId(runId)];
    for (const one of runIds) yield* verifyRun(this.#backend, this.#codec, one);
  }

  /** Keeps what a graph looks like, once for each fingerprint. */
  async saveTopology(topology: GraphTopology): Promise<void> {
    const { fingerprint } = topology;
    if (this.#graphs.has(fingerprint)) return;
    // Before it is there, so that of many runs that start at once one does it.
    this.#graphs.add(fingerprint);
    try {
      await this.#backend.saveGraph(fingerprint, JSON.stringify(topology));
    } catch (error) {
      this.#graphs.delete(fingerprint);
      throw error;
    }
  }

  /** The graph of a fingerprint; `undefined` if the store does not know it. */
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
   * Keeps the checkpoints that another store exported. If that fails none of them stays, as the
   * beginning of a run would be taken for the whole of it. A process that is killed leaves it: delete
   * the run then.
   *
   * @throws CheckpointConflictError if the run is there already.
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
      if (last !== undefined) await this.#undoImport(last).catch(() => {});
      throw error;
    }
  }

  /**
   * Adds the next checkpoint of a run as another store has saved it.
   *
   * @param after - the one before it, as this store has it; `undefined` for the first.
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

  /** Finishes what is under way in the background and lets go of files and connections. */
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
    const origin = last && recordOf(last).saved;
    const as = { checkpointId, sequence, savedAt: savedAt || isoNow(), parentId };
    const written = await this.#write(state, { after, origin, rule, as });
    if (isHead(written)) throw conflict(state.runId, after, written);
    return written;
  }

  /** Where the run has to be for a State whose origin is known. */
  #known(saved: Saved): After | undefined {
    if (saved.sequence === 0) return { sequence: 0, checkpointId: "" };
    const origin = this.#origins.get(saved);
    return origin && { sequence: saved.sequence, checkpointId: origin.head };
  }

  /**
   * The same for a State of which only its own checkpoint is known: it may build on any of its run, but
   * not on one of another run with this id that was deleted, and whose successor has come as far.
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

  /** What to build on instead, when a run is not where its State was; `undefined` if that would overwrite another's work. */
  async #buildable<D extends object>(
    { runId, sequence }: State<D>,
    head: Head,
  ): Promise<After | undefined> {
    if (head.claimedBy !== undefined) return undefined;
    // What could not be known then is known now: that save is in the store, and this one goes after it.
    if (this.#unsure.get(runId)?.get(head.checkpointId) === sequence) return head;
    if (sequence > 0 || head.sequence === 0) return undefined;
    // A run of which nothing is left but what was set aside may start over.
    const chain = await this.#backend.chain(runId, { below: Number.POSITIVE_INFINITY });
    return chain?.records.length === 0 ? chain.head : undefined;
  }

  /** The State as it was saved, or where the run is when that is elsewhere. */
  async #write<D extends object>(state: State<D>, writing: Writing): Promise<State<D> | Head> {
    const { after, origin, rule } = writing;
    const { runId } = state;
    const as = writing.as ?? {
      checkpointId: this.#newId(),
      sequence: after.sequence + 1,
      savedAt: isoNow(),
      parentId: state.checkpointId,
    };
    const { checkpointId, sequence, savedAt, parentId } = as;
    const { keep, keepPerPhase } = rule;
    const previous = after.checkpointId ?? "";
    const place = { checkpointId, sequence, savedAt, parentId, previous, keep, keepPerPhase };
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
      // Its own record is where the run is: the answer to a first attempt was lost.
      if (elsewhere !== undefined && elsewhere.checkpointId !== checkpointId) return elsewhere;
    } catch (error) {
      throw this.#refusal(state, error, made === undefined ? undefined : checkpointId);
    }
    if (this.#unsure.size > 0) this.#unsure.delete(runId);
    const { bytes, base = sequence } = made?.record ?? {};
    const saved: Saved = { checkpointId, sequence, savedAt, bytes };
    this.#origins.set(saved, { head: checkpointId, base: made?.base });
    if (keep !== Number.POSITIVE_INFINITY) {
      const { step, phase, unfinished } = recordOf(state).progress;
      this.#upkeep.note(runId, {
        sequence,
        base,
        step,
        phase,
        unfinished: unfinished !== undefined,
      });
    }
    return state.savedAs(saved);
  }

  /** What a save is refused with: an error that says why itself, or that of the store, with its place around it. */
  #refusal<D extends object>(state: State<D>, error: unknown, checkpointId?: string): unknown {
    // What is corrupt is in the way of this save, and not a checkpoint that somebody asked for.
    if (isWaymarkError(error) && !isWaymarkError(error, "CHECKPOINT_CORRUPT")) return error;
    const unsure =
      checkpointId !== undefined && (error instanceof BackendError ? error.unsure : true);
    const { runId, sequence } = state;
    if (unsure) {
      const ids = this.#unsure.get(runId) ?? new Map<string, number>();
      this.#unsure.set(runId, ids.set(checkpointId, sequence));
    }
    return this.#unsaved(state, messageOf(error), unsure, error);
  }

  #checkSize<D extends object>(state: State<D>, bytes: number): void {
    if (bytes <= this.#maxBytes) return;
    const problem = `the checkpoint has ${bytes} bytes, more than maxBytes (${this.#maxBytes})`;
    throw this.#unsaved(state, `${problem}: keep less in the State, or raise it`, false);
  }

  #afterSave<D extends object>(saved: State<D>, rule: KeepRule, emit: Emit): void {
    const { runId, checkpointNode: node, bytes = 0 } = saved;
    if (bytes > this.#warnBytes) {
      const message = `the checkpoint has ${bytes} bytes, more than warnBytes (${this.#warnBytes})`;
      warn(runId, { kind: "size", node, message }, emit);
    }
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
    const what = unsure
      ? `the checkpoint of run ${show(runId)} may not have been saved in ${place}`
      : `nothing of run ${show(runId)} was saved in ${place}`;
    const reason = cause instanceof BackendError ? cause.cause : cause;
    const options = { nodeName, state, path: [], cause: reason };
    return new CheckpointSaveError(`${what}: ${problem}`, options);
  }

  #loaded<D extends object>(state: State<D>, { head, records }: Chain, sequence: number): State<D> {
    const { checkpointId, savedAt } = state;
    const { header, content } = records.at(-1) ?? { header: "", content: "" };
    const bytes = Buffer.byteLength(header) + Buffer.byteLength(content);
    const saved: Saved = { checkpointId, sequence, savedAt, bytes };
    this.#origins.set(saved, { head: head.checkpointId, base: undefined });
    return state.savedAs(saved);
  }

  #undoImport({ runId, sequence }: State<object>): Promise<unknown> {
    return this.#backend.remove([{ runId, sequence }], { unclaimed: false, dryRun: false });
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
  const error = new CheckpointConflictError(runId, after.sequence, head.sequence);
  if (head.claimedBy !== undefined) {
    const { host, pid } = head.claimedBy;
    error.message = `run ${show(runId)} was claimed by process ${pid} on ${host} since: this process can't write to it any more`;
  } else if (after.sequence === head.sequence && after.sequence > 0) {
    error.message = `run ${show(runId)} was deleted and started again: this State builds on another checkpoint ${after.sequence}`;
  }
  return error;
}
