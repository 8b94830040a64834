import { join } from "node:path";
import { BackendError, type Encode, type NewRecord } from "../../checkpoint/records/backend.js";
import { toDocument } from "../../checkpoint/records/document.js";
import { isWaymarkError, messageOf } from "../../errors.js";
import { ignoring, reserve, succeeds, together } from "./file-system.js";
import { syncNames } from "./folders.js";
import { checkpointName, goneName, QUARANTINE, temporaryName } from "./layout.js";
import type { RunFolder } from "./run-folder.js";

/*
 * Two processes on one run: exactly one wins, and there is no lock, so none can be left behind by
 * a dead process, nor be mistaken for another's after its process id was used again.
 *
 * A name is what is fought for. To save sequence n+1 on top of n a writer
 *   1. writes a temporary file, and syncs it;
 *   2. looks whether the very file that it builds on, n, is still there;
 *   3. links the temporary file to the name of n+1, which fails when that is taken;
 *   4. looks once more whether n is there, and n+1 is neither in quarantine nor said to be gone. If
 *      so, the save counts. If not, it has lost; its file stays where it is, older than what the
 *      winner has written.
 * What makes this enough: if n is there after n+1 was linked, no n+1 can have been there before and be
 * gone again unseen. There are three ways for a file to lose its name.
 *   - Quarantine: it is seen there.
 *   - Delete: it removes the oldest first and stops at the first failure, so n went before n+1.
 *   - Discard, which keeps some files that are older than those it removes: a step before the progress
 *     saves after it. Before x loses its name while x-1 has its own, or is in quarantine, an empty file
 *     `.checkpoint_x.gone` is made. It goes when a look at the folder finds no file that is older than
 *     x. That is enough for all who would write x: they have seen the folder when x-1 was the highest,
 *     so x-1 was the file they build on, which is gone or still there, or it was in quarantine. And as
 *     they look for this file first and for n after it, they can't miss both.
 * The newest file is never discarded, so the highest sequence can always be seen. So a writer that
 * knows an old state of the run, however old, either meets the name, or the word that it was used, or
 * misses its n. Without an n, in a run that seems to have no file, it looks at the whole folder.
 * Delete also takes temporary files away, and looks again until it finds nothing: a writer that has
 * passed step 2 before can't get past step 3 after it, so a deleted run does not come back.
 * n is held open, so its number can't be given to another file meanwhile.
 *
 * A writer never takes a name back: between a look and the removal it could have become another's.
 * For the same reason there is one thing that this does not cover: a run that is deleted and started
 * again under the same id while another process was stopped in the middle of discarding files of the
 * old one.
 */

/** The newest file of a run, as known to this process. */
export interface Newest {
  readonly sequence: number;
  /** See {@link FileInfo.id}. */
  readonly id: string;
  readonly checkpointId: string;
  /** Kept open so that no other file can get this id; closed by the owner of this object. */
  readonly file: number | undefined;
}

/** What is known of a run. */
export interface Base {
  /** The highest sequence that was ever used. */
  readonly sequence: number;
  readonly newest: Newest | undefined;
  /** The folder, open, once it was synced. */
  readonly folder: number | undefined;
}

/** Appends files to one run's folder. */
export class Appender {
  readonly #folder: RunFolder;

  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  /**
   * Writes the file that comes after `base`; it is safe when the promise resolves.
   *
   * @param encode - returns the record to write; it runs while the file is being created.
   * @returns the base of the next one; `"stale"` if this one did not hold, so that there may be
   *   another to look for; `"lost"` if somebody else was seen to be at it.
   * @throws BackendError if the file system fails; what `encode` throws is thrown as it is.
   */
  async append(base: Base, encode: Encode): Promise<Base | "stale" | "lost"> {
    const { fs } = this.#folder;
    const temporary = this.#folder.at(temporaryName(base.sequence + 1, fs.owner));
    const creating = ignoring(fs.create(temporary));
    const [created, encoded] = await Promise.allSettled([creating, attempt(encode)]);
    if (encoded.status === "rejected") {
      if (created.status === "fulfilled" && created.value !== undefined)
        await this.#giveUp(temporary, created.value, undefined);
      throw encoded.reason;
    }
    if (created.status === "rejected") throw failure(created.reason, false);
    if (created.value === undefined) return "stale";
    return this.#write(base, encoded.value, temporary, created.value);
  }

  async #write(
    base: Base,
    record: NewRecord,
    temporary: string,
    file: number,
  ): Promise<Base | "stale" | "lost"> {
    const { fs, path, durable } = this.#folder;
    const { sequence } = record;
    const { checkpointId } = record.fields;
    let folder = base.folder;
    let won = false;
    let mayBeNamed = false;
    try {
      await fs.write(file, toDocument(record));
      const openFolder = async (): Promise<void> => {
        folder ??= await ignoring(fs.openFolder(path));
      };
      const [, , { id }, holds] = await together([
        durable ? fs.sync(file) : undefined,
        durable ? openFolder() : undefined,
        fs.stat(file),
        this.#isThere(base.newest),
      ]);
      // Another process is deleting the run and has removed its folder.
      const isGone = durable && folder === undefined;
      if (!holds || isGone) return "stale";
      mayBeNamed = true;
      if (!(await this.#claim(temporary, sequence))) return "stale";
      const [, , isNext] = await together([
        folder === undefined ? undefined : syncNames(fs, folder),
        // If this fails, the next sweep removes the file.
        fs.unlink(temporary).catch(() => {}),
        this.#isNext(base.newest, sequence),
      ]);
      won = isNext;
      return won ? { sequence, newest: { sequence, id, checkpointId, file }, folder } : "lost";
    } catch (error) {
      throw failure(error, mayBeNamed);
    } finally {
      if (!won) await this.#giveUp(temporary, file, folder === base.folder ? undefined : folder);
    }
  }

  /** Whether the file that this save builds on still has its name. */
  async #isThere(newest: Newest | undefined): Promise<boolean> {
    if (newest === undefined) return true;
    return (await this.#folder.fs.idOf(this.#folder.at(newest.sequence))) === newest.id;
  }

  /** Gives the file its name. */
  async #claim(temporary: string, sequence: number): Promise<boolean> {
    const { fs } = this.#folder;
    const path = this.#folder.at(sequence);
    const how = await reserve(fs, temporary, path);
    return how === "reserved" ? succeeds(fs.rename(temporary, path)) : how === "linked";
  }

  /** Whether no other file has had this sequence before. */
  async #isNext(newest: Newest | undefined, sequence: number): Promise<boolean> {
    if (newest === undefined) {
      const listing = await this.#folder.list();
      const { checkpoints = [], quarantined = [], highest } = listing ?? {};
      const alone = checkpoints.length === 1 && highest === sequence;
      return alone && !quarantined.includes(checkpointName(sequence));
    }
    for (const name of [join(QUARANTINE, checkpointName(sequence)), goneName(sequence)]) {
      if ((await this.#folder.fs.idOf(this.#folder.at(name))) !== undefined) return false;
    }
    return this.#isThere(newest);
  }

  /** Cleans up; at worst, a file is left for the next sweep. */
  async #giveUp(temporary: string, file: number, folder: number | undefined): Promise<void> {
    const { fs } = this.#folder;
    await fs.close(file).catch(() => {});
    if (folder !== undefined) await fs.close(folder).catch(() => {});
    await fs.unlink(temporary).catch(() => {});
  }
}

/**
 * The error for a file system that failed while a file was written.
 *
 * @param unsure - whether the file may have got its name nevertheless.
 */
export function failure(cause: unknown, unsure: boolean): Error {
  if (isWaymarkError(cause, "CONFIG")) return cause;
  return new BackendError(messageOf(cause), { unsure, cause });
}

/** Calls a function; what it throws becomes a rejection. */
async function attempt<T>(action: () => T | Promise<T>): Promise<T> {
  return action();
}
