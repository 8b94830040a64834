import { dirname, join } from "node:path";
import type { HeaderEntry, StoredRecord } from "../../checkpoint/records/backend.js";
import { FRAME_BYTES, fromDocument, headerOf } from "../../checkpoint/records/document.js";
import type { RecordHeader } from "../../checkpoint/records/header.js";
import { CheckpointCorruptionError, SerializationError } from "../../errors.js";
import {
  type FileSystem,
  ignoring,
  namesIn,
  readFile,
  refused,
  reserve,
  succeeds,
  syncFolder,
} from "./file-system.js";
import {
  checkpointName,
  goneName,
  goneSequence,
  ownerOf,
  QUARANTINE,
  quarantinedSequence,
  quarantineName,
  sequenceOf,
} from "./layout.js";

/** Bytes to read for a header: first enough for names of ordinary length, then enough for any. */
const HEAD_SIZES = [4 * 1024, 256 * 1024];

/** How many heads are in memory at a time. */
const BATCH = 128;

/** How old a temporary file must be to be removed if its writer is not known to be dead, in milliseconds. */
const ABANDONED = 60 * 60 * 1000;

/** What is in a run's folder. */
export interface Listing {
  /** The sequences that have a file, oldest first. */
  readonly checkpoints: readonly number[];
  /** The highest sequence known to have been used; 0 for none. */
  readonly highest: number;
  /** The sequences that have a file in quarantine, some perhaps several. */
  readonly quarantined: readonly number[];
  /** The names of the files that are being written, or were left behind. */
  readonly temporaries: readonly string[];
  /** The sequences that a `.gone` file marks as used. */
  readonly gone: readonly number[];
}

/** A record's size and header; `undefined` if that can't be read or belongs to another run or sequence. */
type Headed = Pick<HeaderEntry, "bytes" | "header">;

/** The folder of one run: reads and removes its files. A `RunWriter` adds new ones. */
export class RunFolder {
  readonly fs: FileSystem;
  readonly path: string;
  /** The run; `undefined` if only its checkpoints hold the id. */
  readonly runId: string | undefined;

  constructor(fs: FileSystem, path: string, runId: string | undefined) {
    this.fs = fs;
    this.path = path;
    this.runId = runId;
  }

  /** The path of a name in the folder, or of a checkpoint's file. */
  at(name: string | number): string {
    return join(this.path, typeof name === "string" ? name : checkpointName(name));
  }

  /**
   * Lists the folder; `undefined` if it does not exist.
   *
   * @throws CheckpointCorruptionError if there is something other than a folder in its place.
   */
  async list(): Promise<Listing | undefined> {
    const names = await namesIn(this.fs, this.path);
    if (names === undefined) return undefined;
    const aside = names.includes(QUARANTINE) ? await namesIn(this.fs, this.at(QUARANTINE)) : [];
    const quarantined = (aside ?? []).flatMap((name) => quarantinedSequence(name) ?? []);
    const checkpoints = sequencesIn(names);
    const gone = names.flatMap((name) => goneSequence(name) ?? []);
    return {
      checkpoints,
      highest: Math.max(checkpoints.at(-1) ?? 0, ...quarantined, ...gone),
      quarantined,
      temporaries: names.filter((name) => ownerOf(name) !== undefined),
      gone,
    };
  }

  /** Whether a header belongs to this checkpoint; if the run is unknown, only the sequence is compared. */
  owns(header: RecordHeader | undefined, sequence: number): header is RecordHeader {
    const { runId } = this;
    return header?.sequence === sequence && (runId === undefined || header.runId === runId);
  }

  /** The headers of these checkpoints, by sequence; without those that are missing or not a file. */
  async headers(sequences: readonly number[]): Promise<ReadonlyMap<number, Headed>> {
    const found = new Map<number, Headed>();
    let missing = sequences;
    for (const size of HEAD_SIZES) {
      const long: number[] = [];
      for (let start = 0; start < missing.length; start += BATCH) {
        const batch = missing.slice(start, start + BATCH);
        const paths = batch.map((sequence) => this.at(sequence));
        const heads = await this.fs.heads(paths, size);
        for (const [index, sequence] of batch.entries()) {
          const head = heads[index];
          if (head === undefined) continue;
          const header = headerOf(head.bytes);
          const bytes = Math.max(0, head.size - FRAME_BYTES);
          found.set(sequence, { header: this.owns(header, sequence) ? header : undefined, bytes });
          if (header === undefined && head.size > size) long.push(sequence);
        }
      }
      missing = long;
    }
    return found;
  }

  /** The header of a checkpoint, if it can be read. */
  async header(sequence: number): Promise<RecordHeader | undefined> {
    return (await this.headers([sequence])).get(sequence)?.header;
  }

  /** The newest of these headers that can be read. */
  async newestHeader(checkpoints: readonly number[]): Promise<RecordHeader | undefined> {
    for (const sequence of checkpoints.toReversed()) {
      const header = await this.header(sequence);
      if (header !== undefined) return header;
    }
    return undefined;
  }

  /**
   * The record in a file; `undefined` if it is gone.
   *
   * @throws CheckpointCorruptionError if there is something other than a file in its place.
   */
  async read(sequence: number): Promise<StoredRecord | undefined> {
    const path = this.at(sequence);
    const bytes = await readFile(this.fs, path);
    if (bytes === undefined) return undefined;
    try {
      return fromDocument(bytes, path, sequence);
    } catch (fault) {
      const isKnown =
        fault instanceof CheckpointCorruptionError || fault instanceof SerializationError;
      if (isKnown) return faulty(sequence, fault);
      throw fault;
    }
  }

  /**
   * Moves a corrupt file to quarantine, where it can be inspected. Its new name is durable before the old one
   * is removed, so no crash can lose it, and a writer that takes the old name afterwards sees that it was
   * used before.
   *
   * @param isBad - called again on a file system without links, where a name that a living writer has only
   *   reserved looks corrupt.
   * @returns its new path; `undefined` if it no longer exists or is no longer corrupt.
   */
  async quarantine(sequence: number, isBad: () => Promise<boolean>): Promise<string | undefined> {
    const { fs } = this;
    const path = this.at(sequence);
    const aside = this.at(QUARANTINE);
    if (!(await succeeds(ignoring(fs.mkdir(aside), ["EEXIST"])))) return undefined;
    await namesIn(fs, aside); // refuses a link in its place
    for (let attempt = 0; ; attempt++) {
      const target = join(aside, quarantineName(sequence, attempt));
      let how = await reserve(fs, path, target);
      if (how === "taken") how = await leftBehind(fs, path, target);
      if (how === "taken") continue;
      if (how === "gone") return undefined;
      if (how === "reserved") {
        const moved = (await isBad()) && (await succeeds(fs.rename(path, target)));
        if (!moved) {
          await fs.unlink(target);
          return undefined;
        }
      }
      await syncFolder(fs, aside);
      await syncFolder(fs, this.path);
      if (how === "linked") await ignoring(fs.unlink(path));
      return target;
    }
  }

  /** Removes a checkpoint's file if it belongs to this run; any other file is moved to quarantine. */
  async discard(sequence: number): Promise<void> {
    const { fs } = this;
    const path = this.at(sequence);
    const found = await ignoring(fs.lstat(path));
    if (found === undefined) return;
    if (found.kind === "folder") throw refused(path, "a file", found.kind);
    const isForeign = async (): Promise<boolean> => {
      const header = await this.header(sequence);
      return header === undefined && (await fs.idOf(path)) === found.id;
    };
    if (await isForeign()) await this.quarantine(sequence, isForeign);
    else await this.unlink(sequence);
  }

  /** Removes a file, if it is there. */
  async unlink(name: string | number): Promise<void> {
    await ignoring(this.fs.unlink(this.at(name)));
  }

  /**
   * Removes the run: temporary files first, then its checkpoints, oldest first, with a sync before the
   * newest. A crash leaves the run as it was, with less history, or gone, but never set back. Foreign files
   * and the quarantine stay.
   *
   * @param expected - the sequence that the run must be at to be removed; any if absent.
   * @returns whether it was removed.
   */
  async remove(expected?: number): Promise<boolean> {
    // The folder may be missing: another process may be removing the run too.
    const sync = (): Promise<void> => ignoring(syncFolder(this.fs, this.path));
    for (let removed = false; ; removed = true) {
      const { checkpoints = [], temporaries = [], gone = [] } = (await this.list()) ?? {};
      const newest = checkpoints.at(-1);
      if (expected !== undefined && newest !== undefined && newest !== expected) return removed;
      for (const name of temporaries) await this.unlink(name);
      if (newest === undefined && temporaries.length === 0) {
        for (const sequence of gone) await this.unlink(goneName(sequence));
        break;
      }
      const older = checkpoints.slice(0, -1);
      for (const sequence of older) await this.discard(sequence);
      if (older.length > 0) await sync();
      if (newest !== undefined) await this.discard(newest);
      await sync();
    }
    await this.#removeIfEmpty();
    return true;
  }

  async #removeIfEmpty(): Promise<void> {
    const stays = ["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"];
    await ignoring(this.fs.rmdir(this.at(QUARANTINE)), stays);
    const gone = await succeeds(this.fs.rmdir(this.path), stays);
    if (gone) await syncFolder(this.fs, dirname(this.path));
  }

  /** The temporary files whose writer is another process that appears to be dead. */
  leftovers(temporaries: readonly string[]): string[] {
    const { fs } = this;
    return temporaries.filter((name) => {
      const owner = ownerOf(name) ?? fs.owner;
      return owner !== fs.owner && fs.processes.isLiving(owner) === false;
    });
  }

  /**
   * Removes temporary files of other processes whose writer is dead, or that are an hour old. A writer whose
   * file was removed by mistake notices and writes it again.
   */
  async sweep(temporaries: readonly string[], time: number): Promise<void> {
    const { fs } = this;
    const dead = new Set(this.leftovers(temporaries));
    for (const name of temporaries) {
      if (!dead.has(name)) {
        if (ownerOf(name) === fs.owner) continue;
        const found = await ignoring(fs.lstat(this.at(name)));
        if (found === undefined || time - found.modified < ABANDONED) continue;
      }
      await this.unlink(name);
    }
  }
}

/** The sequences that have a file among these names, oldest first. */
export function sequencesIn(names: readonly string[]): number[] {
  return names.flatMap((name) => sequenceOf(name) ?? []).sort((a, b) => a - b);
}

/** A record that can't be read. */
export function faulty(sequence: number, fault: Error): StoredRecord {
  return { sequence, header: "", content: "", sha256: "", fault };
}

/** The name may be taken by the same move, begun by a process that died in the middle. */
async function leftBehind(
  fs: FileSystem,
  path: string,
  target: string,
): Promise<"linked" | "taken" | "gone"> {
  const found = await ignoring(fs.lstat(path));
  const there = await ignoring(fs.lstat(target));
  return found === undefined ? "gone" : found.id === there?.id ? "linked" : "taken";
}
