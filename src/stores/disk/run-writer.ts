import { join } from "node:path";
import type { After, Encode, Head } from "../../checkpoint/records/backend.js";
import { headerOf } from "../../checkpoint/records/document.js";
import { Mutex } from "../../concurrency.js";
import { systemCode } from "../../errors.js";
import { Appender, type Base, type Newest, unwritten } from "./append.js";
import { ignoring } from "./file-system.js";
import { type Root, syncFolder } from "./folders.js";
import { checkpointName, goneName, QUARANTINE } from "./layout.js";
import type { Listing, RunFolder } from "./run-folder.js";

/** How often to list the folder again if the file that a save builds on is gone although nobody else saved. */
const ATTEMPTS = 100;
/** Enough bytes for the header of a document. */
const HEAD = 64 * 1024;

/** What a writer knows about its run's folder. */
interface Known extends Base {
  /** Files up to this sequence were already there; those above it are this writer's own. */
  readonly found: number;
}

/** Writes and discards one run's files, one after the other. */
export class RunWriter {
  readonly #folder: RunFolder;
  readonly #root: Root;
  readonly #onListing: (listing: Listing) => void;
  readonly #appender: Appender;
  readonly #mutex = new Mutex();
  #known: Known | undefined;
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
    this.#appender = new Appender(folder);
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
      if (typeof next === "object") return undefined;
      await this.forget();
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
    const { fs, path, durable } = this.#folder;
    if (!durable) return;
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
    const next = await this.#appender.append(known, encode);
    if (typeof next === "string") return next;
    this.#known = { ...next, found: known.found };
    this.#last = next.sequence;
    if (known.newest?.file !== undefined) this.#folder.fs.close(known.newest.file).catch(() => {});
    return this.#known;
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
        const newest = this.#last || (await this.#newestFile());
        const sequences = [...this.#doomed].sort((a, b) => a - b);
        for (const sequence of sequences) {
          // The newest file is never discarded: see append.ts. Nor is this writer's last one: another writer
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

  async #newestFile(): Promise<number> {
    return (await this.#folder.list())?.checkpoints.at(-1) ?? 0;
  }

  async #remove(sequence: number): Promise<void> {
    await this.#noteGone(sequence);
    const { found = sequence } = this.#known ?? {};
    if (sequence <= found) await this.#folder.discard(sequence);
    else await this.#folder.unlink(sequence);
  }

  /** Marks a sequence as used, where a writer could still try to use it: see append.ts. */
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
function headOf({ sequence, newest }: Base): Head {
  // Nothing is known about a file in quarantine.
  const checkpointId = newest?.sequence === sequence ? newest.checkpointId : "";
  return { sequence, checkpointId };
}

/** Whether the run is still at `after`. A newest checkpoint that can't be read may be the expected one. */
function fits(known: Base, { sequence, checkpointId }: After): boolean {
  const head = headOf(known);
  return (
    head.sequence === sequence &&
    (checkpointId === undefined || head.checkpointId === "" || head.checkpointId === checkpointId)
  );
}
