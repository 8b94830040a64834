/**
 * Checkpoints as files: one JSON document each, that survives a crash and that a person can read.
 *
 * @packageDocumentation
 */
import { join } from "node:path";
import { checkAt, checkSave } from "../checkpoint/arguments.js";
import { filterRuns } from "../checkpoint/retention.js";
import type {
  CheckpointAt,
  CheckpointStore,
  Claim,
  ExportedCheckpoint,
  HistoryEntry,
  Retention,
  RunFilter,
  RunSummary,
  SaveOptions,
  StoreContext,
} from "../checkpoint/store.js";
import { now } from "../clock.js";
import { checkRunId } from "../state/run-id.js";
import type { State } from "../state/state.js";
import { Claims } from "./file/claim.js";
import type { FileSystem } from "./file/file-system.js";
import { folderName, ownerOf } from "./file/layout.js";
import type { Listing } from "./file/listing.js";
import { NodeFileSystem } from "./file/node-file-system.js";
import { type FileStoreOptions, type ResolvedOptions, resolveOptions } from "./file/options.js";
import { RunReader } from "./file/reader.js";
import { removeRun, sweep } from "./file/removal.js";
import { restoreRun } from "./file/restore.js";
import { Root } from "./file/root.js";
import { findRuns, inParallel, summarizeRun } from "./file/runs.js";
import { checkSize, refusalOf } from "./file/save-error.js";
import { Upkeep } from "./file/upkeep.js";
import { exportRun, pruneRuns } from "./file/whole-runs.js";
import { RunWriter } from "./file/writer.js";

export type { FileStoreOptions };

/** For how many runs to remember, with two open files each, what was saved last; the others are looked up again. */
const REMEMBERED_RUNS = 64;

/**
 * Keeps each checkpoint as a file of its own, `{root}/{runId}/checkpoint_NNNN.json`: a JSON document
 * with its own SHA-256. A save is in one piece or not there, and it survives a power cut. A file that
 * is not what was written is moved to `{runId}/quarantine/`, and the next older is used. Several
 * processes may use one root; of two that go on with the same run, one gets a conflict.
 *
 * Nothing is removed that this store did not write, and what is in quarantine stays also when its run
 * is deleted: a person decides about it.
 *
 * @example
 * ```ts
 * import { mkdtemp } from "node:fs/promises";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { State } from "waymark";
 * import { FileStore } from "waymark/stores/file";
 *
 * const store = new FileStore({ root: await mkdtemp(join(tmpdir(), "waymark-")), keep: 10 });
 * const saved = await State.create({ topic: "cairns" }).checkpoint(store);
 * const loaded = await new FileStore({ root: store.root }).load<{ topic: string }>(saved.runId);
 * console.log(loaded.data.topic); // cairns
 * ```
 */
export class FileStore implements CheckpointStore {
  /** The folder for the checkpoints of all runs, as an absolute path. */
  readonly root: string;
  readonly #options: ResolvedOptions;
  readonly #fs: FileSystem;
  readonly #root: Root;
  readonly #writers = new Map<string, RunWriter>();
  readonly #upkeep: Upkeep;
  readonly #claims: Claims;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options?: FileStoreOptions);
  /** @internal */
  constructor(options: FileStoreOptions, fileSystem: FileSystem);
  constructor(options: FileStoreOptions = {}, fileSystem: FileSystem = nodeFileSystem) {
    this.#options = resolveOptions(options);
    this.root = this.#options.root;
    const { warnBytes, retention } = this.#options;
    this.#upkeep = new Upkeep({ warnBytes, retention, prune: (rule) => this.prune(rule) });
    this.#fs = fileSystem;
    this.#claims = new Claims(fileSystem, this.root);
    this.#root = new Root(fileSystem, this.root, this.#options.durable);
  }

  /**
   * Writes a State to a file of its own.
   *
   * @throws CheckpointConflictError when the run is not at the sequence that the State carries.
   * @throws CheckpointSaveError when it is larger than `maxBytes`, or the file system fails; the
   *   checkpoints before it are as they were.
   * @throws SerializationError when the data can't be kept exactly.
   */
  async save<D extends object>(state: State<D>, options: SaveOptions = {}): Promise<State<D>> {
    checkSave(state, options);
    const writer = this.#writer(state.runId);
    try {
      const saved = await writer.inTurn(() => writer.save(state));
      this.#afterSave(writer, saved, options);
      return saved;
    } catch (error) {
      throw refusalOf(this.#folder(state.runId), state, error);
    }
  }

  /**
   * The newest State of a run that is whole, or the one asked for. A corrupt file is moved to
   * quarantine, told by a `checkpoint.quarantine` event, and the next older is taken.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when all are corrupt, or names what is no file.
   * @throws the file system's own error, which names the file, when it can't be read.
   */
  async load<D extends object>(
    runId: string,
    at: CheckpointAt = {},
    context: StoreContext = {},
  ): Promise<State<D>> {
    checkAt(at, context);
    return this.#reader(checkRunId(runId)).load(at, context.emit);
  }

  /** Removes a run's checkpoints, for good when the promise resolves. What is in its quarantine stays. */
  async delete(runId: string): Promise<void> {
    await this.#remove(checkRunId(runId));
  }

  /** The ids of all runs. */
  async list(): Promise<string[]> {
    return (await findRuns(this.#fs, this.root)).flatMap(({ runId }) => runId ?? []);
  }

  /** The checkpoints of a run, newest first. Only the beginning of each file is read, and nothing is verified. */
  async history(runId: string): Promise<HistoryEntry[]> {
    return this.#reader(checkRunId(runId)).history();
  }

  /** The runs that fit a filter, most recent first. */
  async runs(filter?: RunFilter): Promise<RunSummary[]> {
    return filterRuns([...(await this.#summaries()).keys()], filter);
  }

  /** Removes old runs that are finished; one that is claimed, or was saved to meanwhile, is left alone. */
  async prune(retention: Retention): Promise<string[]> {
    const sequences = await this.#summaries();
    return pruneRuns(sequences.keys(), retention, this.#claims, (run) =>
      this.#remove(run.runId, sequences.get(run)),
    );
  }

  /**
   * Says that this process works on a run; `undefined` when a living process has said so already. The
   * claim of a dead one, on this machine or another, does not count.
   */
  async claim(runId: string): Promise<Claim | undefined> {
    return this.#claims.claim(checkRunId(runId));
  }

  /** All kept checkpoints of a run, oldest first. */
  async *export(runId: string): AsyncGenerator<ExportedCheckpoint> {
    const reader = this.#reader(checkRunId(runId));
    yield* exportRun(await reader.history(), (wanted) => reader.load(wanted, undefined));
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
    await restoreRun(checkpoints, (runId) => ({
      fs: this.#fs,
      folder: this.#folder(runId),
      durable: this.#options.durable,
      root: this.#root,
      encode: (state, parentId) => this.#encode(state, parentId),
      remove: (sequence) => this.#remove(runId, sequence),
    }));
  }

  /** Waits for what is done in the background and closes all files. The store may be used again. */
  async close(): Promise<void> {
    await this.#upkeep.settled();
    const writers = [...this.#writers.values()];
    this.#writers.clear();
    await Promise.all(writers.map((writer) => writer.inTurn(() => writer.forget())));
  }

  #folder(runId: string): string {
    return join(this.root, folderName(runId));
  }

  #reader(runId: string): RunReader {
    return new RunReader(this.#folder(runId), runId, {
      fs: this.#fs,
      durable: this.#options.durable,
      codec: this.#options.codec,
      onListing: (folder, listing) => this.#sweep(folder, listing),
    });
  }

  /** The one writer of a run. */
  #writer(runId: string): RunWriter {
    const writer = this.#writers.get(runId) ?? this.#newWriter(runId);
    this.#writers.delete(runId);
    this.#writers.set(runId, writer);
    this.#makeRoom(writer);
    return writer;
  }

  /** Drops the writers that were not used for longest. Those that are busy may be too many for a while. */
  #makeRoom(writer: RunWriter): void {
    if (this.#writers.size <= REMEMBERED_RUNS) return;
    for (const [runId, one] of this.#writers) {
      if (one !== writer && one.idle) this.#drop(runId, one);
      if (this.#writers.size <= REMEMBERED_RUNS) return;
    }
  }

  #newWriter(runId: string): RunWriter {
    const folder = this.#folder(runId);
    return new RunWriter(folder, runId, {
      fs: this.#fs,
      durable: this.#options.durable,
      root: this.#root,
      encode: (state, parentId) => this.#encode(state, parentId),
      onListing: (listing) => this.#sweep(folder, listing),
    });
  }

  async #encode<D extends object>(state: State<D>, parentId: string): Promise<Uint8Array> {
    const bytes = await this.#options.codec.encode(state, parentId);
    checkSize(this.#folder(state.runId), state, bytes.length, this.#options.maxBytes);
    return bytes;
  }

  #drop(runId: string, writer: RunWriter): void {
    if (this.#writers.get(runId) === writer) this.#writers.delete(runId);
    this.#upkeep.start(() => writer.inTurn(() => writer.forget()));
  }

  #afterSave<D extends object>(writer: RunWriter, saved: State<D>, options: SaveOptions): void {
    const { runId, checkpointNode: node, status } = saved;
    const { emit, keep = this.#options.keep } = options;
    this.#upkeep.start(() => writer.rotate(keep), emit, node);
    // Nothing more is to come, so its files need not stay open.
    if (status === "completed" || status === "failed") this.#drop(runId, writer);
    this.#makeRoom(writer);
    this.#upkeep.afterSave(saved, emit);
  }

  #sweep(folder: string, { temporaries }: Listing): void {
    const foreign = temporaries.flatMap((name) => {
      const owner = ownerOf(name);
      return owner === undefined || owner === this.#fs.owner ? [] : [{ name, owner }];
    });
    if (foreign.length === 0) return;
    this.#upkeep.start(() => sweep(this.#fs, folder, foreign, now()));
  }

  async #remove(runId: string, expected?: number): Promise<boolean> {
    const writer = this.#writer(runId);
    return writer.inTurn(async () => {
      await writer.forget();
      return removeRun(this.#fs, this.#folder(runId), runId, this.#options.durable, expected);
    });
  }

  /** All runs, each with the sequence it is at. */
  async #summaries(): Promise<Map<RunSummary, number>> {
    const found = await findRuns(this.#fs, this.root);
    const summaries = await inParallel(found, (run) => summarizeRun(this.#fs, run));
    return new Map(summaries.flatMap((one) => (one ? [[one.summary, one.sequence]] : [])));
  }
}

const nodeFileSystem = new NodeFileSystem();
