/**
 * Checkpoints as a journal: what changed is appended to one log that all runs share.
 *
 * @packageDocumentation
 */
import { join, resolve } from "node:path";
import { checkAt, checkSave } from "../checkpoint/arguments.js";
import { DEFAULT_KEEP, filterRuns } from "../checkpoint/retention.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  type ExportedCheckpoint,
  type HistoryEntry,
  isNewest,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
} from "../checkpoint/store.js";
import { checkRunId } from "../state/run-id.js";
import type { State } from "../state/state.js";
import { Claims } from "./file/claim.js";
import type { FileSystem } from "./file/file-system.js";
import { NodeFileSystem } from "./file/node-file-system.js";
import { checkSize, messageOf, refusalOf } from "./file/save-error.js";
import { Upkeep } from "./file/upkeep.js";
import { exportRun, importRun, pruneRuns, type Wanted } from "./file/whole-runs.js";
import { AnchorsFile } from "./journal/anchors.js";
import { Committer } from "./journal/committer.js";
import { Compactor } from "./journal/compactor.js";
import { LOG } from "./journal/layout.js";
import { LineFiles } from "./journal/line-files.js";
import { Log } from "./journal/log.js";
import { LogFolder } from "./journal/log-folder.js";
import {
  checkJournalOptions,
  type FlushInterval,
  type JournalStoreOptions,
} from "./journal/options.js";
import { Quarantine } from "./journal/quarantine.js";
import { JournalReader, type Loaded } from "./journal/reader.js";
import { RecordCodec } from "./journal/record.js";
import { Resolver } from "./journal/resolver.js";
import { type FoundRun, findJournalRuns, type RunsSettings, summaryOf } from "./journal/runs.js";
import { Tail } from "./journal/tail.js";
import { JournalWriter } from "./journal/writer.js";

export type { FlushInterval, JournalStoreOptions };

const KB = 1024;

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
  readonly #log: Log;
  readonly #tail: Tail;
  readonly #parts: RunsSettings;
  readonly #resolver: Resolver;
  readonly #reader: JournalReader;
  readonly #writer: JournalWriter;
  readonly #committer: Committer;
  readonly #compactor: Compactor;
  readonly #claims: Claims;
  readonly #keep: number;
  readonly #upkeep: Upkeep;
  #compacting: Promise<void> = Promise.resolve();
  /** Whom to tell what goes wrong in the background. */
  #emit: StoreContext["emit"];

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options?: JournalStoreOptions);
  /** @internal */
  constructor(options: JournalStoreOptions, fileSystem: FileSystem);
  constructor(options: JournalStoreOptions = {}, fs: FileSystem = nodeFileSystem) {
    checkJournalOptions(options);
    const { durability = "fsync", snapshotEvery = 256, logBytes = 8 * KB * KB } = options;
    const { maxBytes = 100 * KB * KB, warnBytes = 500 * KB, retention } = options;
    const durable = durability !== "os";
    this.root = resolve(options.root ?? join(".waymark", "journal"));
    this.#keep = options.keep ?? DEFAULT_KEEP;
    this.#upkeep = new Upkeep({ warnBytes, retention, prune: (rule) => this.prune(rule) });
    this.#claims = new Claims(fs, this.root);
    const folder = new LogFolder(fs, join(this.root, LOG), durable);
    const log = new Log(fs, folder, { durable, each: durability === "fsync" });
    const codec = new RecordCodec(options.codec, snapshotEvery);
    const anchors = new AnchorsFile(fs, log.folder);
    const files = new LineFiles(fs, this.root, log);
    const quarantine = new Quarantine(fs, durable, log, files);
    const resolver = new Resolver({ fs, log, files, anchors });
    const shared = { fs, durable, log, codec, files, resolver, quarantine, anchors };
    this.#log = log;
    this.#tail = new Tail(fs, folder, codec);
    this.#resolver = resolver;
    this.#reader = new JournalReader(shared);
    this.#parts = { ...shared, root: this.root, reader: this.#reader };
    this.#compactor = new Compactor(shared);
    const committer = new Committer({
      ...shared,
      flushEvery: typeof durability === "object" ? durability.flushEvery : undefined,
      logBytes,
      start: (task) => this.#start(task),
      // The newest file that is sealed is left alone: by the time the next is, most runs need nothing in it.
      onSealed: () => this.#start(() => this.#compact(1)),
      onFlushFailed: (error) => {
        const problem = `what was saved last may not outlive a power cut: ${messageOf(error)}`;
        this.#emit?.("checkpoint.error", { action: "save", node: "", error: problem });
      },
    });
    this.#committer = committer;
    this.#writer = new JournalWriter({
      ...shared,
      committer,
      reader: this.#reader,
      compactor: this.#compactor,
      checkSize: (state, bytes) => checkSize(this.root, state, bytes, maxBytes),
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
    checkSave(state, options);
    if (options.emit !== undefined) this.#emit = options.emit;
    try {
      const saved = await this.#writer.save(state, options.keep ?? this.#keep);
      this.#upkeep.afterSave(saved, options.emit);
      return saved;
    } catch (error) {
      throw refusalOf(this.root, state, error);
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
    checkAt(at, context);
    return this.#load(checkRunId(runId), at, context.emit);
  }

  /** Removes a run's checkpoints, for good when the promise resolves. What is in its quarantine stays. */
  async delete(runId: string): Promise<void> {
    await this.#writer.delete(checkRunId(runId));
  }

  /** The ids of all runs. */
  async list(): Promise<string[]> {
    return (await this.#runs()).map(({ runId }) => runId);
  }

  /** The checkpoints of a run, newest first, out of their headers; no State is read. */
  async history(runId: string): Promise<HistoryEntry[]> {
    checkRunId(runId);
    await this.#follow();
    return this.#resolver.with(runId, (view) => this.#reader.history(view));
  }

  /** The runs that fit a filter, most recent first. */
  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return filterRuns([...(await this.#summaries()).keys()], filter);
  }

  /** Removes old runs that are finished; one that is claimed, or was saved to meanwhile, is left alone. */
  async prune(retention: Retention): Promise<string[]> {
    const heads = await this.#summaries();
    return pruneRuns(heads.keys(), retention, this.#claims, (run) =>
      this.#writer.delete(run.runId, heads.get(run)),
    );
  }

  /** Says that this process works on a run; `undefined` when a living process has said so already. */
  async claim(runId: string): Promise<Claim | undefined> {
    return this.#claims.claim(checkRunId(runId));
  }

  /** All kept checkpoints of a run, oldest first. */
  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    yield* exportRun(await this.history(runId), (wanted) => this.#load(runId, wanted, undefined));
  }

  /**
   * Keeps the checkpoints that another store exported. If that fails, none of them stays: the beginning
   * of a run would be taken for the whole of it. A process that is killed leaves it: delete it then.
   *
   * @throws CheckpointConflictError when the run is there already.
   */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    await importRun(
      checkpoints,
      ({ state, parentId }, after) => this.#writer.restore(state, parentId, after),
      (last) => this.#writer.delete(last.runId, last.checkpointId),
    );
  }

  /**
   * Moves all that is kept out of the log at once and frees the rest. It happens by itself when a
   * log is full; nobody has to call this.
   */
  async compact(): Promise<void> {
    await this.#committer.roll();
    await this.#compact(0);
  }

  /**
   * Waits for what is done in the background, flushes and closes all files. The store may be used again.
   *
   * @throws the file system's own error when what was saved with `flushEvery` could not be flushed, and
   *   no save was refused for it since.
   */
  async close(): Promise<void> {
    await this.#upkeep.settled();
    await this.#committer.close();
  }

  async #load<D extends object>(
    runId: string,
    wanted: Wanted,
    emit: StoreContext["emit"],
  ): Promise<State<D>> {
    // Who has not read the log yet need not, if its end tells.
    const isTold = this.#log.number === 0 && isNewest(wanted);
    const { state, head } =
      (isTold ? await this.#tail.load<D>(runId) : undefined) ??
      (await this.#find<D>(runId, wanted, emit));
    this.#writer.loaded(state, head);
    return state;
  }

  async #find<D extends object>(
    runId: string,
    wanted: Wanted,
    emit: StoreContext["emit"],
  ): Promise<Loaded<D>> {
    await this.#follow();
    return this.#resolver.with(runId, (view) => this.#reader.load<D>(view, wanted, emit));
  }

  #follow(): Promise<void> {
    return this.#log.inTurn(() => this.#log.follow());
  }

  async #runs(): Promise<FoundRun[]> {
    for (;;) {
      await this.#follow();
      const { closings } = this.#log;
      const found = await findJournalRuns(this.#parts);
      // What is in a log that was closed meanwhile was not found.
      if (this.#log.closings === closings) return found;
    }
  }

  /** The runs whose newest record can be read, each with its id. */
  async #summaries(): Promise<Map<RunSummary, string>> {
    const found = (await this.#runs()).flatMap(({ newest }) => newest ?? []);
    return new Map(found.map((newest) => [summaryOf(newest), newest.checkpointId]));
  }

  /** Compacts all sealed files of the log but the newest few. One at a time. */
  #compact(spared: number): Promise<void> {
    const compacting = this.#compacting.then(async () => {
      const upTo = this.#log.sealed.at(-1 - spared);
      if (upTo !== undefined) await this.#compactor.compact(upTo);
    });
    this.#compacting = compacting.catch(() => {});
    return compacting;
  }

  /** Does something that nobody waits for. */
  #start(task: () => Promise<unknown>): void {
    this.#upkeep.start(task, this.#emit);
  }
}

const nodeFileSystem = new NodeFileSystem();
