/**
 * Checkpoints as a journal: what changed is appended to one log that all runs share.
 *
 * @packageDocumentation
 */
import { join, resolve } from "node:path";
import { v7 } from "uuid";
import { checkKeep, DEFAULT_KEEP, filterRuns, prunable } from "../checkpoint/retention.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  checkAt,
  type HistoryEntry,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
} from "../checkpoint/store.js";
import { now } from "../clock.js";
import type { CodecOptions } from "../codecs/pipeline.js";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  ConfigError,
  SerializationError,
  show,
} from "../errors.js";
import { check, checkOptions, integer, text } from "../options.js";
import type { Saved } from "../state/record.js";
import { checkRunId } from "../state/run-id.js";
import { State } from "../state/state.js";
import { Background } from "./file/background.js";
import type { FileSystem } from "./file/file-system.js";
import { NodeFileSystem } from "./file/node-file-system.js";
import { AnchorsFile } from "./journal/anchors.js";
import { Committer } from "./journal/committer.js";
import { Compactor } from "./journal/compactor.js";
import { deletionLine } from "./journal/deletion.js";
import { Log } from "./journal/log.js";
import { JournalReader } from "./journal/reader.js";
import { type Base, RecordCodec } from "./journal/record.js";
import { findJournalRuns } from "./journal/runs.js";
import type { Known, RunView } from "./journal/view.js";

/** Options of {@link JournalStore}. */
export interface JournalStoreOptions {
  /** The folder for the log and the records of all runs; `.waymark/journal` by default. It is created when it is needed. */
  readonly root?: string;
  /**
   * What a save waits for. `"fsync"`, the default: until the disk has it, so that a power cut loses
   * nothing that was acknowledged. `{ flushEvery: ms }`: until the operating system has it, and the disk
   * gets it at most so many milliseconds later; a power cut loses what is younger than that.
   * `"os"`: the same, and the disk gets it when the system likes, mostly within half a minute. The
   * death of the process alone loses nothing in any of them.
   */
  readonly durability?: "fsync" | "os" | { readonly flushEvery: number };
  /** How many checkpoints of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
  /**
   * At the latest, every so many checkpoints of a run are written whole; 256 by default, 1 for all of
   * them. Sooner when what changed since the last whole one comes to more than that one: so
   * to load a State about twice its size is read at most.
   */
  readonly snapshotEvery?: number;
  /** How large a file of the log gets, in bytes, before it is sealed and compacted; 8 MB by default. */
  readonly logBytes?: number;
  /** Which finished runs to remove, in the background, about once an hour while runs are saved; none by default. */
  readonly retention?: Retention;
  /** The largest record of a checkpoint, in bytes; a larger one is refused. 100 MB by default. */
  readonly maxBytes?: number;
  /** A larger record, in bytes, is told by a `checkpoint.error` event with the action `size`. 500 KB by default. */
  readonly warnBytes?: number;
  /** Compresses and encrypts each record; see {@link CodecOptions}. */
  readonly codec?: CodecOptions;
}

const KB = 1024;
const HOUR = 60 * 60 * 1000;
/** How often a save tries again when its run turned out to be elsewhere and yet where the State thinks. */
const ATTEMPTS = 20;

/**
 * Keeps what changed from one checkpoint to the next, in one log that all runs and processes append
 * to. A step that changes 1 KB of a large State writes about 1 KB, and saves that come at the same
 * time share one write and one flush. In the background a log that is full is compacted: what
 * `keep` asks for goes to `{root}/{runId}/`, the rest is gone.
 *
 * Safe like the file store: a record is in one piece or not there, each has its SHA-256, one that is
 * not what was written is copied to `{runId}/quarantine/` and the newest that does not need it is
 * used. Several processes may use one root, on one machine and a local disk; of two that go on with
 * the same run, one gets a conflict.
 *
 * @example
 * ```ts
 * import { mkdtemp } from "node:fs/promises";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { State } from "waymark";
 * import { JournalStore } from "waymark/stores/journal";
 *
 * const store = new JournalStore({ root: await mkdtemp(join(tmpdir(), "waymark-")) });
 * const first = await State.create({ log: ["start"], text: "x".repeat(10_000) }).checkpoint(store);
 * const second = await first.set("log", ["start", "step"]).checkpoint(store);
 * console.log((first.bytes ?? 0) > 10_000, (second.bytes ?? 0) < 1000); // true true
 * const loaded = await store.load<{ log: string[] }>(first.runId);
 * console.log(loaded.data.log.join()); // start,step
 * await store.close();
 * ```
 */
export class JournalStore implements CheckpointStore {
  /** The folder for the log and the records of all runs, as an absolute path. */
  readonly root: string;
  readonly #fs: FileSystem;
  readonly #codec: RecordCodec;
  readonly #log: Log;
  readonly #reader: JournalReader;
  readonly #committer: Committer;
  readonly #compactor: Compactor;
  readonly #keep: number;
  readonly #retention: Retention | undefined;
  readonly #maxBytes: number;
  readonly #warnBytes: number;
  readonly #background = new Background();
  /** The States that were saved, each with its record, for as long as somebody builds on it. */
  readonly #bases = new WeakMap<Saved, Base>();
  /** The newest record of its run that a State was saved as, or loaded beside. */
  readonly #heads = new WeakMap<Saved, string>();
  /** Makes the ids of this store's checkpoints different from any other's. */
  readonly #id = v7();
  #saves = 0;
  #prunedAt = Number.NEGATIVE_INFINITY;
  #compacting: Promise<void> | undefined;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options?: JournalStoreOptions);
  /** @internal */
  constructor(options: JournalStoreOptions, fileSystem: FileSystem);
  constructor(options: JournalStoreOptions = {}, fileSystem: FileSystem = nodeFileSystem) {
    checkOptions("JournalStore", options, {
      root: text,
      durability: check('"fsync", "os" or { flushEvery: ms }', isDurability),
      keep: checkKeep,
      snapshotEvery: integer(1),
      logBytes: integer(1),
      retention: (_, value) => prunable([], value as Retention),
      maxBytes: integer(1),
      warnBytes: integer(1, true),
      codec: () => {},
    });
    const { durability = "fsync", snapshotEvery = 256, logBytes = 8 * KB * KB } = options;
    const durable = durability !== "os";
    this.root = resolve(options.root ?? join(".waymark", "journal"));
    this.#fs = fileSystem;
    this.#codec = new RecordCodec(options.codec, snapshotEvery);
    this.#keep = options.keep ?? DEFAULT_KEEP;
    this.#retention = options.retention;
    this.#maxBytes = options.maxBytes ?? 100 * KB * KB;
    this.#warnBytes = options.warnBytes ?? 500 * KB;
    this.#log = new Log(fileSystem, this.root, durable);
    const anchors = new AnchorsFile(fileSystem, this.#log.folder, durable);
    const shared = { fs: fileSystem, root: this.root, durable, log: this.#log, anchors };
    this.#reader = new JournalReader({ ...shared, codec: this.#codec });
    this.#compactor = new Compactor({ ...shared, reader: this.#reader });
    this.#committer = new Committer({
      log: this.#log,
      reader: this.#reader,
      flush: durability === "fsync" ? "each" : durability === "os" ? "never" : durability,
      logBytes,
      start: (task) => this.#background.start(task, () => {}),
      // The newest file that is sealed is left alone: by the time the next is, most runs need nothing in it.
      onSealed: () =>
        this.#background.start(
          () => this.#compact(1),
          () => {},
        ),
    });
  }

  /**
   * Appends a State, or what changed in it.
   *
   * @throws CheckpointConflictError when the run is not at the sequence that the State carries.
   * @throws CheckpointSaveError when it is larger than `maxBytes`, or the file system fails; the
   *   checkpoints before it are as they were.
   * @throws SerializationError when the data can't be kept exactly.
   */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    if (!(state instanceof State))
      throw new ConfigError("state", `wants a State, got ${show(state)}`);
    if (options.keep !== undefined) checkKeep("keep", options.keep);
    try {
      const saved = await this.#reader.with(state.runId, (view) =>
        view.inTurn(() => this.#save(view, state, options.keep ?? this.#keep)),
      );
      this.#afterSave(saved, options);
      return saved;
    } catch (error) {
      throw isMeant(error) ? error : this.#unsaved(state, messageOf(error), error);
    }
  }

  /**
   * The newest State of a run that is whole, or the one asked for. A corrupt record is copied to
   * quarantine, told by a `checkpoint.quarantine` event, and the newest that does not need it is taken.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when all are corrupt.
   */
  async load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    checkRunId(runId);
    checkAt(at);
    await this.#follow();
    return this.#reader.with(runId, async (view) => {
      const { state, head } = await this.#reader.load<D>(view, at, context.emit);
      this.#heads.set(State.recordOf(state), head);
      return state;
    });
  }

  /** Removes a run's checkpoints, for good when the promise resolves. What is in its quarantine stays. */
  async delete(runId: string): Promise<void> {
    await this.#delete(checkRunId(runId));
  }

  async list(): Promise<string[]> {
    return (await this.#runs()).map(({ summary }) => summary.runId);
  }

  /** The checkpoints of a run, newest first, out of their headers; no State is read. */
  async history(runId: string): Promise<HistoryEntry[]> {
    checkRunId(runId);
    await this.#follow();
    return this.#reader.with(runId, (view) => this.#reader.history(view));
  }

  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    const runs = await this.#runs();
    return filterRuns(
      runs.map(({ summary }) => summary),
      filter,
    );
  }

  /** Removes old runs that are finished; a run that was saved to meanwhile is left alone. */
  async prune(retention: Retention): Promise<string[]> {
    const heads = new Map((await this.#runs()).map(({ summary, head }) => [summary, head]));
    const removed: string[] = [];
    for (const run of prunable([...heads.keys()], retention)) {
      const isGone =
        retention.dryRun === true || (await this.#delete(run.runId, heads.get(run) ?? ""));
      if (isGone) removed.push(run.runId);
    }
    return removed;
  }

  /**
   * Moves all that is kept out of the log at once and frees the rest. It happens by itself when a
   * log is full; nobody has to call this.
   */
  async compact(): Promise<void> {
    await this.#committer.roll();
    await this.#compact(0);
  }

  /** Waits for what is done in the background, flushes and closes all files. The store may be used again. */
  async close(): Promise<void> {
    await this.#background.settled();
    await this.#committer.flush();
    await this.#log.inTurn(() => this.#log.close());
  }

  async #save<D extends object>(view: RunView, state: State<D>, keep: number): Promise<State<D>> {
    if (this.#log.number === 0) await this.#follow();
    const record = State.recordOf(state);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = this.#isAt(view, record) ? view.known : await this.#where(view, record);
      const place = {
        checkpointId: `${this.#id}.${++this.#saves}`,
        sequence: known.sequence + 1,
        previous: known.head?.id ?? "",
        parentId: state.checkpointId,
        keep,
      };
      const base = this.#bases.get(record);
      const encoding = this.#codec.encode(state, place, base);
      const { kind, line, base: next } = encoding instanceof Promise ? await encoding : encoding;
      const bytes = line.length;
      if (bytes > this.#maxBytes) {
        const problem = `the record has ${bytes} bytes, more than maxBytes (${this.#maxBytes})`;
        throw this.#unsaved(state, `${problem}: keep less in the State, or raise it`);
      }
      const builtOn = state.sequence;
      if ((await this.#committer.append({ view, kind, line, place, builtOn })) === "stale")
        continue;
      view.unsure.clear();
      const { checkpointId, sequence } = place;
      const saved: Saved = { checkpointId, sequence, bytes };
      this.#bases.set(saved, next);
      this.#heads.set(saved, checkpointId);
      return state.savedAs(saved);
    }
    throw new Error(`the log in ${this.root} changed ${ATTEMPTS} times while it was written to`);
  }

  /** Whether a run is known to be where a State thinks. */
  #isAt(view: RunView, record: Saved): view is RunView & { known: Known } {
    const { known, unsure } = view;
    if (known === undefined) return false;
    const newest = known.head?.id ?? "";
    // Where the newest record is known that it was built on, a run that was deleted and has come to
    // the same sequence again is seen to be another.
    const head = this.#heads.get(record) ?? newest;
    const same = known.sequence === record.sequence && newest === head;
    return same || unsure.get(newest) === record.sequence;
  }

  /** What is known of a run, once all was read; it must be where a State thinks. */
  async #where(view: RunView, record: Saved): Promise<Known> {
    await this.#reader.known(view);
    if (this.#isAt(view, record)) return view.known;
    await this.#follow();
    const known = await this.#reader.known(view);
    if (this.#isAt(view, record)) return view.known;
    throw new CheckpointConflictError(view.runId, record.sequence, known.sequence);
  }

  /** Ends a run; only if `head` is still its newest record, where that is given. */
  async #delete(runId: string, head?: string): Promise<boolean> {
    await this.#follow();
    return this.#reader.with(runId, (view) =>
      view.inTurn(async () => {
        for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
          const known = await this.#reader.known(view);
          if (known.head === undefined) {
            // What was moved out of the log before the run's end; the rest goes with the log.
            const end = view.lines.findLast(({ kind }) => kind === "delete")?.log ?? 0;
            await this.#compactor.remove(this.#reader.folder(runId), end - 1);
            return true;
          }
          if (head !== undefined && known.head.id !== head) return false;
          const line = deletionLine(runId, known.sequence, head);
          const end = { view, kind: "delete", line, place: undefined, builtOn: 0 } as const;
          await this.#committer.append(end);
        }
        throw new Error(
          `the log in ${this.root} changed ${ATTEMPTS} times while it was written to`,
        );
      }),
    );
  }

  #follow(): Promise<void> {
    return this.#log.inTurn(() => this.#log.follow());
  }

  async #runs() {
    await this.#follow();
    return findJournalRuns(this.#fs, this.root, this.#log, this.#reader);
  }

  /** Compacts all sealed files of the log but the newest few. One at a time. */
  async #compact(spared: number): Promise<void> {
    await this.#compacting;
    const upTo = this.#log.sealed.at(-1 - spared);
    if (upTo === undefined) return;
    this.#compacting = this.#compactor.compact(upTo).finally(() => {
      this.#compacting = undefined;
    });
    await this.#compacting;
  }

  #afterSave<D extends object>(saved: State<D>, { emit }: SaveOptions): void {
    const { checkpointNode: node, bytes = 0 } = saved;
    if (bytes > this.#warnBytes) {
      const error = `the record has ${bytes} bytes, more than warnBytes (${this.#warnBytes})`;
      emit?.("checkpoint.error", { action: "size", node, error });
    }
    const retention = this.#retention;
    if (retention === undefined || now() - this.#prunedAt <= HOUR) return;
    this.#prunedAt = now();
    this.#background.start(
      () => this.prune(retention),
      (error) => emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) }),
    );
  }

  #unsaved<D extends object>(
    state: State<D>,
    problem: string,
    cause?: unknown,
  ): CheckpointSaveError {
    const message = `nothing of run ${show(state.runId)} was saved in ${this.root}: ${problem}`;
    const { checkpointNode: nodeName } = state;
    return new CheckpointSaveError(message, { nodeName, state, path: [], cause });
  }
}

const nodeFileSystem = new NodeFileSystem();

function isDurability(value: unknown): boolean {
  if (value === "fsync" || value === "os") return true;
  if (typeof value !== "object" || value === null) return false;
  const ms: unknown = Reflect.get(value, "flushEvery");
  return Object.keys(value).length === 1 && Number.isSafeInteger(ms) && Number(ms) > 0;
}

/** Whether a save failed for a reason of its own, not of the file system's. */
function isMeant(error: unknown): boolean {
  return [CheckpointConflictError, CheckpointSaveError, ConfigError, SerializationError].some(
    (kind) => error instanceof kind,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
