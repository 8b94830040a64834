import { resolve } from "node:path";
import { checkKeep, DEFAULT_KEEP, prunable } from "../../checkpoint/retention.js";
import type { Retention } from "../../checkpoint/store.js";
import { type CodecOptions, DocumentCodec } from "../../codecs/document.js";
import { checkOptions, integer, oneOf, text } from "../../options.js";

/** Options of `FileStore`. */
export interface FileStoreOptions {
  /** The folder for the checkpoints of all runs; `.waymark` by default. It is created when it is needed. */
  readonly root?: string;
  /**
   * What a save waits for. `"fsync"`, the default: until the disk has it, so that it survives a power cut.
   * `"os"`: until the operating system has it, so that it survives the death of the process only. A
   * power cut can lose the checkpoints of the last half minute, also when these are all that are kept.
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

/** Options that were checked, with their defaults. */
export interface ResolvedOptions {
  readonly root: string;
  readonly durable: boolean;
  readonly keep: number;
  readonly retention: Retention | undefined;
  readonly maxBytes: number;
  readonly warnBytes: number;
  readonly codec: DocumentCodec;
}

const KB = 1024;

/** @throws ConfigError when an option is not what it must be. */
export function resolveOptions(options: FileStoreOptions): ResolvedOptions {
  checkOptions("FileStore", options, {
    root: text,
    durability: oneOf("fsync", "os"),
    keep: checkKeep,
    retention: (_, value) => prunable([], value as Retention),
    maxBytes: integer(1),
    warnBytes: integer(1, true),
    codec: () => {},
  });
  return {
    root: resolve(options.root ?? ".waymark"),
    durable: options.durability !== "os",
    keep: options.keep ?? DEFAULT_KEEP,
    retention: options.retention,
    maxBytes: options.maxBytes ?? 100 * KB * KB,
    warnBytes: options.warnBytes ?? 500 * KB,
    codec: new DocumentCodec(options.codec),
  };
}
