import { join } from "node:path";
import type { FileSystem } from "./file-system.js";
import { together, unless } from "./file-system.js";
import { checkpointName, QUARANTINE, temporaryName } from "./layout.js";
import { list } from "./listing.js";
import { reserve } from "./reserve.js";
import { syncNames } from "./sync.js";

/*
 * Two processes on one run: exactly one wins, and there is no lock, so none can be left behind by
 * a dead process, nor be mistaken for another's after its process id was used again.
 *
 * A name is what is fought for. To save sequence n+1 on top of n a writer
 *   1. writes a temporary file, and syncs it;
 *   2. looks whether the very file that it builds on, n, is still there;
 *   3. links the temporary file to the name of n+1, which fails when that is taken;
 *   4. looks once more whether n is there and n+1 is not in quarantine. If so, the save counts. If
 *      not, it has lost; its file stays where it is, older than what the winner has written.
 * What makes this enough: files lose their names in the order of their sequence only (rotation and
 * delete both go oldest first and stop at the first failure). If n is there after n+1 was linked, no
 * n+1 can have been there before and be gone again, but by quarantine, where it would be seen. So a
 * writer that knows an old state of the run, however old, either meets the name or misses its n.
 * Delete also takes temporary files away, and looks again until it finds nothing: a writer that has
 * passed step 2 before can't get past step 3 after it, so a deleted run does not come back.
 * n is held open, so its number can't be given to another file meanwhile.
 *
 * A writer never takes a name back: between a look and the removal it could have become another's.
 * For the same reason there is one thing that this does not cover: a run that is deleted and started
 * anew under the same id while another process was stopped in the middle of rotating the old one.
 */

/** The newest file of a run, as this process knows it. */
export interface Newest {
  readonly sequence: number;
  /** See {@link FileInfo.id}. */
  readonly id: string;
  readonly checkpointId: string;
  /** Open, so that no other file can have this id; closed by whoever holds this. */
  readonly file: number | undefined;
}

/** What is known of a run. */
export interface Base {
  /** The highest sequence that was ever taken. */
  readonly sequence: number;
  readonly newest: Newest | undefined;
  /** The folder, open, once it was synced. */
  readonly folder: number | undefined;
}

/** Appends files to one run's folder. */
export class Appender {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #durable: boolean;

  constructor(fs: FileSystem, path: string, durable: boolean) {
    this.#fs = fs;
    this.#path = path;
    this.#durable = durable;
  }

  /**
   * Writes the file that comes after `base`; it is safe when the promise resolves.
   *
   * @param encode - gives what is to be in it; it works while the file is created.
   * @returns the base of the next one; `"stale"` when this one did not hold, so that there may be
   *   another to look for; `"lost"` when somebody else was seen to be at it.
   */
  async append(
    base: Base,
    encode: () => Promise<Uint8Array>,
    checkpointId: string,
  ): Promise<Base | "stale" | "lost"> {
    const fs = this.#fs;
    const sequence = base.sequence + 1;
    const temporary = join(this.#path, temporaryName(sequence, fs.owner));
    const creating = unless(["ENOENT"], fs.create(temporary), undefined);
    const [created, encoded] = await Promise.allSettled([creating, encode()]);
    if (encoded.status === "rejected") {
      if (created.status === "fulfilled" && created.value !== undefined)
        await this.#giveUp(temporary, created.value, undefined);
      throw encoded.reason;
    }
    if (created.status === "rejected") throw created.reason;
    const file = created.value;
    if (file === undefined) return "stale";
    let folder = base.folder;
    let won = false;
    try {
      await fs.write(file, encoded.value);
      const openFolder = async (): Promise<void> => {
        folder ??= await unless(["ENOENT"], fs.openFolder(this.#path), undefined);
      };
      const [, , { id }, holds] = await together([
        this.#durable ? fs.sync(file) : undefined,
        this.#durable ? openFolder() : undefined,
        fs.stat(file),
        this.#isThere(base.newest),
      ]);
      // Somebody who deletes the run has taken its folder away.
      const isGone = this.#durable && folder === undefined;
      if (!holds || isGone || !(await this.#claim(temporary, sequence))) return "stale";
      const [, , isNext] = await together([
        folder === undefined ? undefined : syncNames(fs, folder),
        // If this fails, a file that nobody needs is left for the next sweep.
        fs.unlink(temporary).catch(() => {}),
        this.#isNext(base.newest, sequence),
      ]);
      won = isNext;
      return won ? { sequence, newest: { sequence, id, checkpointId, file }, folder } : "lost";
    } finally {
      if (!won) await this.#giveUp(temporary, file, folder === base.folder ? undefined : folder);
    }
  }

  /** Whether the file that is built on has its name still. */
  async #isThere(newest: Newest | undefined): Promise<boolean> {
    if (newest === undefined) return true;
    const path = join(this.#path, checkpointName(newest.sequence));
    return (await this.#fs.idOf(path)) === newest.id;
  }

  /** Gives the file its name. */
  async #claim(temporary: string, sequence: number): Promise<boolean> {
    const fs = this.#fs;
    const path = join(this.#path, checkpointName(sequence));
    const how = await reserve(fs, temporary, path);
    if (how !== "reserved") return how === "linked";
    return unless(
      ["ENOENT"],
      fs.rename(temporary, path).then(() => true),
      false,
    );
  }

  /** Whether no other file of this sequence was there before. */
  async #isNext(newest: Newest | undefined, sequence: number): Promise<boolean> {
    if (newest === undefined) {
      const {
        checkpoints = [],
        quarantined = [],
        newest: highest,
      } = (await list(this.#fs, this.#path)) ?? {};
      const alone = checkpoints.length === 1 && highest === sequence;
      return alone && !quarantined.includes(checkpointName(sequence));
    }
    const aside = join(this.#path, QUARANTINE, checkpointName(sequence));
    const [holds, quarantined] = await together([this.#isThere(newest), this.#fs.idOf(aside)]);
    return holds && quarantined === undefined;
  }

  /** Leaves nothing behind but, at the worst, a file that the next sweep takes. */
  async #giveUp(temporary: string, file: number, folder: number | undefined): Promise<void> {
    await this.#fs.close(file).catch(() => {});
    if (folder !== undefined) await this.#fs.close(folder).catch(() => {});
    await this.#fs.unlink(temporary).catch(() => {});
  }
}
