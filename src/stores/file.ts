/**
 * Checkpoints as files: one readable JSON document each, written so that it survives a crash.
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
import { explaining, FileBackend } from "./disk/backend.js";
import { type FileSystem, unsynced } from "./disk/file-system.js";
import { NodeFileSystem, ReadOnlyFileSystem } from "./disk/node-file-system.js";

export type { RecordStore, RecordStoreOptions } from "../checkpoint/records/record-store.js";
export type { CodecOptions } from "../codecs/pipeline.js";

/** Options of `FileStore`. */
export interface FileStoreOptions extends RecordStoreOptions {
  /** The folder for the checkpoints of all runs; `.waymark` by default. The first save creates it. */
  readonly root?: string;
  /**
   * What a save waits for. `"fsync"`, the default: until the disk has it, so it survives a power cut. `"os"`:
   * only until the operating system has it, so it survives a killed process, but a power cut can lose the
   * checkpoints of the last half minute, even if they are the only ones kept.
   */
  readonly durability?: "fsync" | "os";
  /**
   * Only read: corrupt files stay where they are, a missing root has no runs, and saves, claims and removals
   * throw a ConfigError. False by default.
   */
  readonly readOnly?: boolean;
}

/**
 * Keeps each checkpoint as a file of its own, `{root}/{runId}/checkpoint_NNNN.json`: a JSON document with its
 * own SHA-256. A save is complete or absent, and it survives a power cut. A corrupt file is moved to
 * `{runId}/quarantine/`, and the next older one is used. Several processes may use one root; of two that
 * continue the same run, one gets a conflict.
 *
 * The store removes only files that it wrote. Files in quarantine stay even if their run is deleted; what to
 * do with them is up to you.
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
    const backend = new FileBackend(options.durability === "os" ? unsynced(fs) : fs, root);
    super(explaining(backend), { ...options, snapshotEvery: 1, discardEvery: 1 });
    this.root = root;
  }
}
