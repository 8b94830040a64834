import { checkKeep, prunable } from "../../checkpoint/retention.js";
import type { Retention } from "../../checkpoint/store.js";
import type { CodecOptions } from "../../codecs/pipeline.js";
import { check, checkOptions, integer, text } from "../../options.js";

/** How late the disk may get what was saved. */
export interface FlushInterval {
  /** Milliseconds, a whole number from 1 up. */
  readonly flushEvery: number;
}

/** Options of `JournalStore`. */
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
  readonly durability?: "fsync" | "os" | FlushInterval;
  /** How many checkpoints of each run to keep, the newest; at least 2, 5 by default, `Infinity` for all. */
  readonly keep?: number;
  /**
   * At the latest, every so many checkpoints of a run are written whole; 256 by default, 1 for all of
   * them. Sooner when what changed since the last whole one comes to more than that one, and to
   * more than 16 KB: so to load a State about twice its size is read at most.
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

/** @throws ConfigError when an option is not what it must be. */
export function checkJournalOptions(options: JournalStoreOptions): void {
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
}

function isDurability(value: unknown): boolean {
  if (value === "fsync" || value === "os") return true;
  if (typeof value !== "object" || value === null) return false;
  const ms: unknown = Reflect.get(value, "flushEvery");
  return Object.keys(value).length === 1 && Number.isSafeInteger(ms) && Number(ms) > 0;
}
