/**
 * Checkpoints as files: one JSON document each, that survives a crash and that a person can read.
 *
 * @packageDocumentation
 */
import { join } from "node:path";
import { checkKeep, filterRuns, prunable } from "../checkpoint/retention.js";
import {
  type CheckpointAt,
  type CheckpointStore,
  type Claim,
  checkAt,
  type ExportedCheckpoint,
  type HistoryEntry,
  type Retention,
  type RunFilter,
  type RunSummary,
  type SaveOptions,
  type StoreContext,
} from "../checkpoint/store.js";
import { now } from "../clock.js";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  ConfigError,
  SerializationError,
  show,
} from "../errors.js";
import { checkRunId } from "../state/run-id.js";
import { State } from "../state/state.js";
import { Background } from "./file/background.js";
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
import { RunWriter } from "./file/writer.js";

export type { FileStoreOptions };

const HOUR = 60 * 60 * 1000;
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
  readonly #background = new Background();
  readonly #claims: Claims;
  #prunedAt = Number.NEGATIVE_INFINITY;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options?: FileStoreOptions);
  /** @internal */
  constructor(options: FileStoreOptions, fileSystem: FileSystem);
  constructor(options: FileStoreOptions = {}, fileSystem: FileSystem = nodeFileSystem) {
    this.#options = resolveOptions(options);
    this.root = this.#options.root;
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
    if (!(state instanceof State))
      throw new ConfigError("state", `wants a State, got ${show(state)}`);
    if (options.keep !== undefined) checkKeep("keep", options.keep);
    const writer = this.#writer(state.runId);
    try {
      const saved = await writer.inTurn(() => writer.save(state));
      this.#afterSave(writer, saved, options);
      return saved;
    } catch (error) {
      throw isMeant(error) ? error : this.#unsaved(state, messageOf(error), error);
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
    checkAt(at);
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

  /** Removes old runs that are finished; a run that was saved to meanwhile is left alone. */
  async prune(retention: Retention): Promise<string[]> {
    const sequences = await this.#summaries();
    const removed: string[] = [];
    for (const run of prunable([...sequences.keys()], retention)) {
      const isGone =
        retention.dryRun === true || (await this.#remove(run.runId, sequences.get(run)));
      if (isGone) removed.push(run.runId);
    }
    return removed;
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
    for (const { checkpointId, parentId } of (await this.history(runId)).reverse()) {
      yield { state: await this.load<object>(runId, { checkpointId }), parentId };
    }
  }

  /** Keeps the checkpoints that another store exported. */
  async import(
    checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
  ): Promise<void> {
    await restoreRun(checkpoints, (runId) => ({
      fs: this.#fs,
      folder: this.#folder(runId),
      durable: this.#options.durable,
      root: this.#root,
      encode: (state, parentId) => this.#options.codec.encode(state, parentId),
    }));
  }

  /** Waits for what is done in the background and closes all files. The store may be used again. */
  async close(): Promise<void> {
    await this.#background.settled();
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

  /** The one writer of a run; the one that was not used for longest makes room. */
  #writer(runId: string): RunWriter {
    const writer = this.#writers.get(runId) ?? this.#newWriter(runId);
    this.#writers.delete(runId);
    this.#writers.set(runId, writer);
    if (this.#writers.size > REMEMBERED_RUNS) {
      const idle = [...this.#writers].find(([, one]) => one !== writer && one.idle);
      if (idle !== undefined) this.#drop(...idle);
    }
    return writer;
  }

  #newWriter(runId: string): RunWriter {
    const folder = this.#folder(runId);
    return new RunWriter(folder, runId, {
      fs: this.#fs,
      durable: this.#options.durable,
      root: this.#root,
      encode: async (state, parentId) => {
        const bytes = await this.#options.codec.encode(state, parentId);
        if (bytes.length <= this.#options.maxBytes) return bytes;
        const problem = `the checkpoint has ${bytes.length} bytes, more than maxBytes (${this.#options.maxBytes})`;
        throw this.#unsaved(state, `${problem}: keep less in the State, or raise it`);
      },
      onListing: (listing) => this.#sweep(folder, listing),
    });
  }

  #drop(runId: string, writer: RunWriter): void {
    this.#writers.delete(runId);
    this.#background.start(
      () => writer.inTurn(() => writer.forget()),
      () => {},
    );
  }

  #afterSave<D extends object>(writer: RunWriter, saved: State<D>, options: SaveOptions): void {
    const { runId, checkpointNode: node, bytes = 0, status } = saved;
    if (bytes > this.#options.warnBytes) {
      const error = `the checkpoint has ${bytes} bytes, more than warnBytes (${this.#options.warnBytes})`;
      options.emit?.("checkpoint.error", { action: "size", node, error });
    }
    const tell = (error: unknown): void =>
      options.emit?.("checkpoint.error", { action: "delete", node, error: messageOf(error) });
    this.#background.start(() => writer.rotate(options.keep ?? this.#options.keep), tell);
    // Nothing more is to come, so its files need not stay open.
    if (status === "completed" || status === "failed") this.#drop(runId, writer);
    const retention = this.#options.retention;
    if (retention !== undefined && now() - this.#prunedAt > HOUR) {
      this.#prunedAt = now();
      this.#background.start(() => this.prune(retention), tell);
    }
  }

  #sweep(folder: string, { temporaries }: Listing): void {
    const foreign = temporaries.flatMap((name) => {
      const owner = ownerOf(name);
      return owner === undefined || owner === this.#fs.owner ? [] : [{ name, owner }];
    });
    if (foreign.length === 0) return;
    this.#background.start(
      () => sweep(this.#fs, folder, foreign, now()),
      () => {},
    );
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

  #unsaved<D extends object>(
    state: State<D>,
    problem: string,
    cause?: unknown,
  ): CheckpointSaveError {
    const { runId, checkpointNode: nodeName } = state;
    const message = `nothing was saved in ${this.#folder(runId)}: ${problem}`;
    return new CheckpointSaveError(message, { nodeName, state, path: [], cause });
  }
}

const nodeFileSystem = new NodeFileSystem();

/** Whether a save failed for a reason of its own, not of the file system's. */
function isMeant(error: unknown): boolean {
  return [CheckpointConflictError, CheckpointSaveError, ConfigError, SerializationError].some(
    (kind) => error instanceof kind,
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
