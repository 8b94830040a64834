/**
 * Checkpoints as files: one JSON document each, that survives a crash and that a person can read.
 *
 * @packageDocumentation
 */
import { join, resolve } from "node:path";
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
import { type CodecOptions, DocumentCodec } from "../codecs/document.js";
import {
  CheckpointConflictError,
  CheckpointSaveError,
  ConfigError,
  SerializationError,
  show,
} from "../errors.js";
import { checkOptions, integer, oneOf, text } from "../options.js";
import { checkRunId } from "../state/run-id.js";
import { State } from "../state/state.js";
import { Background } from "./file/background.js";
import type { FileSystem } from "./file/file-system.js";
import { folderName, ownerOf } from "./file/layout.js";
import type { Listing } from "./file/listing.js";
import { NodeFileSystem } from "./file/node-file-system.js";
import { RunReader } from "./file/reader.js";
import { removeRun, sweep } from "./file/removal.js";
import { findRuns, inParallel, summarizeRun } from "./file/runs.js";
import { RunWriter } from "./file/writer.js";

/** Options of {@link FileStore}. */
export interface FileStoreOptions {
  /** The folder for the checkpoints of all runs; `.waymark` by default. It is created when it is needed. */
  readonly root?: string;
  /**
   * What a save waits for. `"fsync"`, the default: until the disk has it, so that it survives a power cut.
   * `"os"`: until the operating system has it, so that it survives the death of the process only.
   */
  readonly durability?: "fsync" | "os";
  /** How many checkpoints of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
  /** Which finished runs to remove, in the background, about once an hour while runs are saved; none by default. */
  readonly retention?: Retention;
  /** The largest checkpoint, in bytes; a larger one is refused. 100 MB by default. */
  readonly maxBytes?: number;
  /** A larger checkpoint, in bytes, is told by a `checkpoint.error` event with the action `size`. 500 KB by default. */
  readonly warnBytes?: number;
  /** Compresses and encrypts checkpoints; see {@link CodecOptions}. */
  readonly codec?: CodecOptions;
}

const KB = 1024;
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
  readonly #fs: FileSystem;
  readonly #codec: DocumentCodec;
  readonly #durable: boolean;
  readonly #keep: number;
  readonly #retention: Retention | undefined;
  readonly #maxBytes: number;
  readonly #warnBytes: number;
  readonly #writers = new Map<string, RunWriter>();
  readonly #background = new Background();
  #prunedAt = Number.NEGATIVE_INFINITY;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options: FileStoreOptions = {}) {
    this.root = resolve(check(options).root ?? ".waymark");
    this.#fs = fileSystems.get(options) ?? new NodeFileSystem();
  }
}
