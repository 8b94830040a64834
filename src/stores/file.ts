/**
 * Checkpoints as files: one JSON document each, which survives a crash and which a person can read.
 *
 * @packageDocumentation
 */
import { resolve } from "node:path";
import {
  RecordStore,
  type RecordStoreOptions,
  recordStoreChecks,
} from "../checkpoint/records/record-store.js";
import { checkOptions, flag, oneOf, text } from "../options.js";
import { FileBackend } from "./disk/backend.js";
import type { FileSystem } from "./disk/file-system.js";
import { NodeFileSystem, ReadOnlyFileSystem } from "./disk/node-file-system.js";

/** Options of `FileStore`. */
export interface FileStoreOptions extends RecordStoreOptions {
  /** The folder for the checkpoints of all runs; `.waymark` by default. It is created when it is needed. */
  readonly root?: string;
  /**
   * What a save waits for. `"fsync"`, the default: until the disk has it, so that it survives a power cut.
   * `"os"`: until the operating system has it, so that it survives the death of the process only. A
   * power cut can lose the checkpoints of the last half minute, even if these are all that are kept.
   */
  readonly durability?: "fsync" | "os";
  /**
   * Whether the store only reads; false by default. It then leaves what is corrupt where it is, and has no
   * runs where there is no root. Saves, claims and removals throw a ConfigError.
   */
  readonly readOnly?: boolean;
}

/**
 * Keeps each checkpoint as a file of its own, `{root}/{runId}/checkpoint_NNNN.json`: a JSON document
 * with its own SHA-256. A save is complete or absent, and it survives a power cut. A file that
 * is not what was written is moved to `{runId}/quarantine/`, and the next older is used. Several
 * processes may use one root; of two that continue the same run, one gets a conflict.
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
export class FileStore extends RecordStore {
  /** The folder for the checkpoints of all runs, as an absolute path. */
  readonly root: string;

  /** @throws ConfigError if an option is invalid. */
  constructor(options?: FileStoreOptions);
  /** @internal */
  constructor(options: FileStoreOptions, fileSystem: FileSystem | undefined);
  constructor(options: FileStoreOptions = {}, fileSystem?: FileSystem) {
    checkOptions("FileStore", options, {
      root: text,
      durability: oneOf("fsync", "os"),
      readOnly: flag,
      ...recordStoreChecks,
    });
    const root = resolve(options.root ?? ".waymark");
    const NodeFiles = options.readOnly === true ? ReadOnlyFileSystem : NodeFileSystem;
    const fs = fileSystem ?? new NodeFiles();
    const backend = new FileBackend(fs, root, options.durability !== "os");
    super(backend, { ...options, snapshotEvery: 1, discardEvery: 1 });
    this.root = root;
  }
}
