import { join } from "node:path";
import type { Encode, NewRecord } from "../../checkpoint/records/backend.js";
import { toDocument } from "../../checkpoint/records/document.js";
import { isWaymarkError } from "../../errors.js";
import { failure } from "./failure.js";
import { ignoring, reserve, succeeds, together } from "./file-system.js";
import { syncNames } from "./folders.js";
import { checkpointName, goneName, QUARANTINE, temporaryName } from "./layout.js";
import type { RunFolder } from "./run-folder.js";

/*
 * When two processes save to one run, exactly one wins. There is no lock, so a dead process can't leave
 * one behind, and none can be attributed to the wrong process after its id was reused.
 *
 * The processes compete for a file name. To save sequence n+1 on top of n, a writer
 *   1. writes a temporary file and syncs it;
 *   2. checks that the very file it builds on, n, is still there;
 *   3. links the temporary file to the name of n+1, which fails if that name is taken;
 *   4. checks again that n is there, and that n+1 is neither in quarantine nor marked as gone. If so, the
 *      save counts. If not, it has lost; its file stays where it is, older than what the winner has
 *      written.
 * Why this suffices: if n is there after n+1 was linked, no earlier n+1 can have come and gone unnoticed.
 * A file can lose its name in three ways.
 *   - Quarantine: the file can be seen there.
 *   - Delete: it removes the oldest file first and stops at the first failure, so n went before n+1.
 *   - Discard: it may keep files older than those it removes, such as a step whose later progress saves
 *     are discarded. Before x loses its name while x-1 has its own or is in quarantine, an empty file
 *     `.checkpoint_x.gone` is created. It is removed once a listing of the folder has no file older than
 *     x. That covers every writer that would write x: it saw the folder when x-1 was the highest, so
 *     either x-1 is the file it builds on, which is gone or still there, or x-1 was in quarantine. As a
 *     writer looks for the `.gone` file first and for n after it, it can't miss both.
 * The newest file is never discarded, so the highest sequence can always be seen. A writer whose view of
 * the run is out of date, however old, therefore finds the name taken, finds it marked as gone, or finds
 * its n missing. Without an n, in a run that seems to have no file, it lists the whole folder.
 * Delete also removes temporary files, and lists the folder again until nothing is left: a writer that
 * passed step 2 before can't pass step 3 afterwards, so a deleted run does not come back.
 * The file n is kept open, so its inode can't be reused for another file meanwhile.
 *
 * A writer never removes a name it has taken: between the check and the removal, the name could have
 * become another writer's. For the same reason one case is not covered: a run that is deleted and
 * started again under the same id while another process is suspended in the middle of discarding files
 * of the old one.
 */

/** The newest file of a run, as far as this process knows. */
export interface Newest {
  readonly sequence: number;
  /** See {@link FileInfo.id}. */
  readonly id: string;
  readonly checkpointId: string;
  /** Kept open so that no other file can get this id; closed by the owner of this object. */
  readonly file: number | undefined;
}

/** What this process knows about a run. */
export interface Base {
  /** The highest sequence ever used. */
  readonly sequence: number;
  readonly newest: Newest | undefined;
  /** The open folder; `undefined` until its first sync. */
  readonly folder: number | undefined;
}

/** Appends files to one run's folder. */
export class Appender {
  readonly #folder: RunFolder;

  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  /**
   * Writes the file that comes after `base`; it is durable when the promise resolves.
   *
   * @param encode - returns the record to write; it runs while the file is being created.
   * @returns the base of the next file; `"stale"` if `base` is out of date and the folder must be listed
   *   again; `"lost"` if another writer has won.
   * @throws BackendError if the file system fails; errors from `encode` are passed on unchanged.
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
    if (created.status === "rejected") throw unwritten(created.reason, false);
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
      throw unwritten(error, mayBeNamed);
    } finally {
      if (!won) await this.#giveUp(temporary, file, folder === base.folder ? undefined : folder);
    }
  }

  /** Whether the file that this save builds on still has its name. */
  async #isThere(newest: Newest | undefined): Promise<boolean> {
    if (newest === undefined) return true;
    return (await this.#folder.fs.idOf(this.#folder.at(newest.sequence))) === newest.id;
  }

  /** Gives the file its name; `false` if that failed. */
  async #claim(temporary: string, sequence: number): Promise<boolean> {
    const { fs } = this.#folder;
    const path = this.#folder.at(sequence);
    const how = await reserve(fs, temporary, path);
    return how === "reserved" ? succeeds(fs.rename(temporary, path)) : how === "linked";
  }

  /** Whether no other file ever had this sequence. */
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
 * The error for a file system that failed while a file was written. It names no path: the error of a save does.
 *
 * @param unsure - whether the file may have got its name all the same.
 */
export function unwritten(cause: unknown, unsure: boolean): Error {
  return isWaymarkError(cause, "CONFIG") ? cause : failure(cause, "", unsure);
}

/** Calls a function and turns a synchronous throw into a rejection. */
async function attempt<T>(action: () => T | Promise<T>): Promise<T> {
  return action();
}
