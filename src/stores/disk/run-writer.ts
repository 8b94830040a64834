import { join } from "node:path";
import type { After, Encode, Head, NewRecord } from "../../checkpoint/records/backend.js";
import { headerOf, toDocument } from "../../checkpoint/records/document.js";
import { Mutex } from "../../concurrency.js";
import { isWaymarkError, systemCode } from "../../errors.js";
import { hasEnded } from "../../state/fields.js";
import {
  failure,
  ignoring,
  type Root,
  reserve,
  succeeds,
  syncFolder,
  syncNames,
  together,
} from "./file-system.js";
import { checkpointName, goneName, QUARANTINE, temporaryName } from "./layout.js";
import type { Listing, RunFolder } from "./run-folder.js";

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

/** How often to list the folder again if the file that a save builds on is gone although nobody else saved. */
const ATTEMPTS = 100;
/** Enough bytes for the header of a document. */
const HEAD = 64 * 1024;

/** The newest file of a run, as far as this process knows. */
interface Newest {
  readonly sequence: number;
  /** See {@link FileInfo.id}. */
  readonly id: string;
  readonly checkpointId: string;
  /** Kept open so that no other file can get this id; closed by the owner of this object. */
  readonly file: number | undefined;
}

/** What a writer knows about its run's folder. */
interface Known {
  /** The highest sequence ever used. */
  readonly sequence: number;
  readonly newest: Newest | undefined;
  /** The open folder; `undefined` until its first sync. */
  readonly folder: number | undefined;
  /** Files up to this sequence were already there; those above it are this writer's own. */
  readonly found: number;
}

/** Writes and discards one run's files, one after the other. */
export class RunWriter {
  readonly #folder: RunFolder;
  readonly #root: Root;
  readonly #onListing: (listing: Listing) => void;
  readonly #mutex = new Mutex();
  #known: Known | undefined;
  /** Whether the last record to append says that the run has ended. */
  #hasEnded = false;
  /** The last file that this writer has written; 0 for none. */
  #last = 0;
  /** The sequences to discard. */
  readonly #doomed = new Set<number>();
  #discarding: Promise<void> | undefined;
  /** The highest sequence marked as gone; 0 if there is none. */
  #gone = 0;

  /** @param onListing - receives each listing of the folder. */
  constructor(folder: RunFolder, root: Root, onListing: (listing: Listing) => void) {
    this.#folder = folder;
    this.#root = root;
    this.#onListing = onListing;
  }

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#mutex.idle && this.#doomed.size === 0;
  }

  /** Runs one action at a time, in the order of the calls. */
  inTurn<T>(action: () => Promise<T>): Promise<T> {
    return this.#mutex.run(action);
  }

  /** See `RecordBackend.append`. Must be called inside `inTurn`. */
  async append(after: After, encode: Encode): Promise<Head | undefined> {
    if (this.#known !== undefined && !fits(this.#known, after)) await this.forget();
    let encoding: ReturnType<Encode> | undefined;
    const encodeOnce: Encode = () => {
      encoding ??= encode();
      return encoding;
    };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = await this.#look();
      if (!fits(known, after)) {
        await this.#makeDurable();
        return headOf(known);
      }
      const next = await this.#append(known, encodeOnce).catch(async (error: unknown) => {
        await this.forget();
        throw error;
      });
      const isWritten = typeof next === "object";
      // Of a run that has ended, the files need not stay open.
      if (!isWritten || this.#hasEnded) await this.forget();
      if (isWritten) return undefined;
      if (next === "stale") continue;
      const head = headOf(await this.#look());
      // This save's file has the name now, but another file had it before, and that one counts.
      const { fields } = await encodeOnce();
      return head.checkpointId === fields.checkpointId ? { ...head, checkpointId: "" } : head;
    }
    throw new Error(`${this.#folder.path} changed ${ATTEMPTS} times while it was written to`);
  }

  /**
   * Removes these files, oldest first; a file that does not belong to this run is moved to quarantine. After
   * a failure it stops, and the next call removes the rest.
   */
  async discard(sequences: readonly number[]): Promise<void> {
    for (const sequence of sequences) this.#doomed.add(sequence);
    this.#discarding ??= this.#discard();
    await this.#discarding;
  }

  /** Forgets what is known and closes the open files. */
  async forget(): Promise<void> {
    const known = this.#known;
    this.#known = undefined;
    const { fs } = this.#folder;
    for (const file of [known?.newest?.file, known?.folder]) {
      if (file !== undefined) await fs.close(file).catch(() => {});
    }
  }

  /**
   * Syncs the folder before an existing checkpoint is reported, because the caller relies on it: it may be
   * the one that was to be saved, linked by a call that failed afterwards, or that of a process that died
   * before it synced the name.
   */
  async #makeDurable(): Promise<void> {
    const { fs, path } = this.#folder;
    await ignoring(syncFolder(fs, path)).catch((error: unknown) => {
      throw unwritten(error, true);
    });
  }

  async #append(known: Known, encode: Encode): Promise<Known | "stale" | "lost"> {
    if (known.newest === undefined) {
      // A State that can't be encoded must leave no folder behind.
      await encode();
      try {
        await this.#root.makeFolder(this.#folder.path);
        // Rejects a symbolic link in its place.
        await this.#folder.list();
      } catch (error) {
        throw unwritten(error, false);
      }
    }
    const next = await this.#create(known, encode);
    if (typeof next === "string") return next;
    this.#known = next;
    this.#last = next.sequence;
    if (known.newest?.file !== undefined) this.#folder.fs.close(known.newest.file).catch(() => {});
    return next;
  }

  /**
   * Writes the file that comes after `known`; it is durable when the promise resolves.
   *
   * @param encode - returns the record to write; it runs while the file is being created.
   * @returns the base of the next file; `"stale"` if `known` is out of date and the folder must be listed
   *   again; `"lost"` if another writer has won.
   * @throws BackendError if the file system fails; errors from `encode` are passed on unchanged.
   */
  async #create(known: Known, encode: Encode): Promise<Known | "stale" | "lost"> {
    const { fs } = this.#folder;
    const temporary = this.#folder.at(temporaryName(known.sequence + 1, fs.owner));
    const creating = ignoring(fs.create(temporary));
    // Turns a synchronous throw into a rejection.
    const encoding = (async () => encode())();
    const [created, encoded] = await Promise.allSettled([creating, encoding]);
    if (encoded.status === "rejected") {
      if (created.status === "fulfilled" && created.value !== undefined)
        await this.#giveUp(temporary, created.value, undefined);
      throw encoded.reason;
    }
    this.#hasEnded = hasEnded(encoded.value.fields);
    if (created.status === "rejected") throw unwritten(created.reason, false);
    if (created.value === undefined) return "stale";
    return this.#write(known, encoded.value, temporary, created.value);
  }

  async #write(
    known: Known,
    record: NewRecord,
    temporary: string,
    file: number,
  ): Promise<Known | "stale" | "lost"> {
    const { fs, path } = this.#folder;
    const { sequence } = record;
    const { checkpointId } = record.fields;
    let folder = known.folder;
    let won = false;
    let mayBeNamed = false;
    try {
      await fs.write(file, toDocument(record));
      const openFolder = async (): Promise<void> => {
        folder ??= await fs.openFolder(path);
      };
      const [, isOpen, { id }, holds] = await together([
        fs.sync(file),
        // Fails if another process is deleting the run and has removed its folder.
        succeeds(openFolder()),
        fs.stat(file),
        this.#isThere(known.newest),
      ]);
      if (!holds || !isOpen) return "stale";
      mayBeNamed = true;
      if (!(await this.#claim(temporary, sequence))) return "stale";
      const [, , isNext] = await together([
        folder === undefined ? undefined : syncNames(fs, folder),
        // If this fails, the next sweep removes the file.
        fs.unlink(temporary).catch(() => {}),
        this.#isNext(known.newest, sequence),
      ]);
      won = isNext;
      const newest = { sequence, id, checkpointId, file };
      return won ? { ...known, sequence, newest, folder } : "lost";
    } catch (error) {
      throw unwritten(error, mayBeNamed);
    } finally {
      if (!won) await this.#giveUp(temporary, file, folder === known.folder ? undefined : folder);
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
      return alone && !quarantined.includes(sequence);
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

  /** What is known about the folder; lists it if nothing is. */
  async #look(): Promise<Known> {
    if (this.#known !== undefined) return this.#known;
    try {
      this.#known = await this.#find();
      return this.#known;
    } catch (error) {
      // A file that was written before this look may be there.
      throw unwritten(error, true);
    }
  }

  async #find(): Promise<Known> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const listing = await this.#folder.list();
      if (listing !== undefined) this.#onListing(listing);
      const { highest: sequence = 0, checkpoints = [], gone = [] } = listing ?? {};
      this.#gone = Math.max(0, ...gone);
      const found = checkpoints.at(-1);
      const newest = found === undefined ? undefined : await this.#open(found);
      if (found !== undefined && newest === undefined) continue;
      return { sequence, newest, folder: undefined, found: sequence };
    }
    throw new Error(`${this.#folder.path} changed ${ATTEMPTS} times while it was read`);
  }

  /** Opens the newest file, to recognize it later; `undefined` if it is gone. */
  async #open(sequence: number): Promise<Newest | undefined> {
    const { fs } = this.#folder;
    const path = this.#folder.at(sequence);
    let file: number | undefined;
    try {
      file = await fs.open(path);
      const { id } = await fs.stat(file);
      const header = headerOf(await fs.read(file, HEAD));
      const isOwn = this.#folder.owns(header, sequence);
      return { sequence, id, checkpointId: isOwn ? header.checkpointId : "", file };
    } catch (error) {
      if (file !== undefined) await fs.close(file).catch(() => {});
      if (systemCode(error) === "ENOENT") return undefined;
      // Something that is not a file, or can't be read, takes the name all the same.
      const found = await ignoring(fs.lstat(path));
      return found && { sequence, id: found.id, checkpointId: "", file: undefined };
    }
  }

  async #discard(): Promise<void> {
    try {
      while (this.#doomed.size > 0) {
        const newest = this.#last || ((await this.#folder.list())?.checkpoints.at(-1) ?? 0);
        const sequences = [...this.#doomed].sort((a, b) => a - b);
        for (const sequence of sequences) {
          // The newest file is never discarded: see above. Nor is this writer's last one: another writer
          // that builds on it may have linked its file already, and would lose although nobody wins.
          if (sequence < newest) await this.#remove(sequence);
          this.#doomed.delete(sequence);
        }
        if ((sequences[0] ?? 0) < this.#gone) await this.#removeGone();
      }
    } finally {
      this.#discarding = undefined;
    }
  }

  async #remove(sequence: number): Promise<void> {
    await this.#noteGone(sequence);
    const { found = sequence } = this.#known ?? {};
    if (sequence <= found) await this.#folder.discard(sequence);
    else await this.#folder.unlink(sequence);
  }

  /** Marks a sequence as used, where a writer could still try to use it: see above. */
  async #noteGone(sequence: number): Promise<void> {
    const folder = this.#folder;
    const { fs } = folder;
    const before = checkpointName(sequence - 1);
    for (const name of [before, join(QUARANTINE, before)]) {
      if ((await fs.idOf(folder.at(name))) === undefined) continue;
      this.#gone = Math.max(this.#gone, sequence);
      const creating = fs.create(folder.at(goneName(sequence)));
      const file = await ignoring(creating, ["EEXIST", "ENOENT"]);
      if (file !== undefined) await fs.close(file);
      return;
    }
  }

  /** Removes the marks of sequences that no writer can try to use any more. */
  async #removeGone(): Promise<void> {
    const { checkpoints = [], gone = [] } = (await this.#folder.list()) ?? {};
    const [oldest = 0] = checkpoints;
    for (const sequence of gone.filter((one) => one <= oldest)) {
      await this.#folder.unlink(goneName(sequence));
    }
    this.#gone = Math.max(0, ...gone.filter((one) => one > oldest));
  }
}

/** Where the run is, as far as its newest checkpoint can be read. */
function headOf({ sequence, newest }: Known): Head {
  // Nothing is known about a file in quarantine.
  const checkpointId = newest?.sequence === sequence ? newest.checkpointId : "";
  return { sequence, checkpointId };
}

/** Whether the run is still at `after`. A newest checkpoint that can't be read may be the expected one. */
function fits(known: Known, { sequence, checkpointId }: After): boolean {
  const head = headOf(known);
  return (
    head.sequence === sequence &&
    (checkpointId === undefined || head.checkpointId === "" || head.checkpointId === checkpointId)
  );
}

/**
 * The error for a file system that failed while a file was written. It names no path: the error of a save does.
 *
 * @param unsure - whether the file may have got its name all the same.
 */
function unwritten(cause: unknown, unsure: boolean): Error {
  return isWaymarkError(cause, "CONFIG") ? cause : failure(cause, "", unsure);
}
