import { join } from "node:path";
import { DocumentCodec } from "../../codecs/document.js";
import { CheckpointConflictError } from "../../errors.js";
import { State } from "../../state/state.js";
import { Appender, type Base, type Newest } from "./append.js";
import { newCheckpointId } from "./checkpoint-id.js";
import { codeOf, type FileSystem, unless } from "./file-system.js";
import { checkpointName } from "./layout.js";
import { type Listing, list } from "./listing.js";
import { headersOf } from "./record.js";
import { discard } from "./removal.js";
import type { Root } from "./root.js";
import { Turns } from "./turns.js";

/** How often a save looks again when what it built on was not there any more, and yet nobody else had saved. */
const ATTEMPTS = 100;
/** Enough for the header of a document. */
const HEAD = 64 * 1024;

/** What a writer needs of its store. */
export interface WriterSettings {
  readonly fs: FileSystem;
  readonly durable: boolean;
  readonly root: Root;
  /** A State as the bytes to write; refuses what is too large. */
  readonly encode: <D extends object>(state: State<D>, parentId: string) => Promise<Uint8Array>;
  /** Is told what is in the folder whenever it was looked at. */
  readonly onListing: (listing: Listing) => void;
}

/** What a writer knows of its run's folder. */
interface Known extends Base {
  /** The sequences that have a file, oldest first. */
  readonly files: number[];
  /** Those up to here were found; those above are this writer's own. */
  readonly found: number;
}

/** Writes one run's checkpoints, one after the other. */
export class RunWriter {
  readonly #settings: WriterSettings;
  readonly #folder: string;
  readonly #runId: string;
  readonly #appender: Appender;
  #known: Known | undefined;
  /** A save that failed. Did it so at the very end, its file may be there all the same. */
  #tried: { readonly on: number; readonly checkpointId: string } | undefined;
  readonly #turns = new Turns();
  #keep = Number.POSITIVE_INFINITY;
  #rotating = false;

  constructor(folder: string, runId: string, settings: WriterSettings) {
    this.#folder = folder;
    this.#runId = runId;
    this.#settings = settings;
    this.#appender = new Appender(settings.fs, folder, settings.durable);
  }

  /** Whether nothing is under way. */
  get idle(): boolean {
    return this.#turns.idle && !this.#rotating;
  }

  /** Runs one action at a time, in the order they came. */
  inTurn<T>(action: () => Promise<T>): Promise<T> {
    return this.#turns.take(action);
  }

  /**
   * Saves a State as the next of its run. Only in turn.
   *
   * @throws CheckpointConflictError when the run is not where the State thinks.
   */
  async save<D extends object>(state: State<D>): Promise<State<D>> {
    if (this.#known?.sequence !== state.sequence) await this.forget();
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known: Known = this.#known ?? (await this.#look());
      this.#known = known;
      await this.#compare(state, known);
      const saved = await this.#append(state, known).catch(async (error: unknown) => {
        await this.forget();
        throw error;
      });
      if (saved instanceof State) return saved;
      await this.forget();
      if (saved === "lost") {
        this.#known = await this.#look();
        throw new CheckpointConflictError(this.#runId, state.sequence, this.#known.sequence);
      }
    }
    throw new Error(`${this.#folder} changed ${ATTEMPTS} times while it was written to`);
  }

  /**
   * Removes the oldest files until `keep` are left; one that is not this run's goes to quarantine.
   * Oldest first, and not past a failure: see `append.ts` for what rests on that.
   */
  async rotate(keep: number): Promise<void> {
    this.#keep = keep;
    const { files = [], found = 0 } = this.#known ?? {};
    if (this.#rotating || files.length <= keep) return;
    this.#rotating = true;
    try {
      while (files.length > this.#keep) {
        await this.#remove(files[0] ?? 0, found);
        files.shift();
      }
    } finally {
      this.#rotating = false;
    }
  }

  /** Lets go of what is known and of the files that are open for it. */
  async forget(): Promise<void> {
    const known = this.#known;
    this.#known = undefined;
    const { fs } = this.#settings;
    for (const file of [known?.newest?.file, known?.folder]) {
      if (file !== undefined) await fs.close(file).catch(() => {});
    }
  }

  async #append<D extends object>(
    state: State<D>,
    known: Known,
  ): Promise<State<D> | "stale" | "lost"> {
    const { encode, fs, root } = this.#settings;
    const record = { checkpointId: newCheckpointId(), sequence: known.sequence + 1 };
    let encoding: Promise<Uint8Array> | undefined;
    const encodeOnce = (): Promise<Uint8Array> => {
      encoding ??= encode(state.savedAs(record), state.checkpointId);
      return encoding;
    };
    if (known.newest === undefined) {
      // What is refused leaves no folder behind.
      await encodeOnce();
      await root.makeFolder(this.#folder);
      // Refuses a link that was put in its place.
      await list(fs, this.#folder);
    }
    this.#tried = { on: state.sequence, checkpointId: record.checkpointId };
    const next = await this.#appender.append(known, encodeOnce, record.checkpointId);
    if (typeof next === "string") return next;
    const { length: bytes } = await encodeOnce();
    this.#tried = undefined;
    known.files.push(next.sequence);
    this.#known = { ...next, files: known.files, found: known.found };
    if (known.newest?.file !== undefined) fs.close(known.newest.file).catch(() => {});
    return state.savedAs({ ...record, bytes });
  }

  /** Refuses a State that was not built on what is in the folder. */
  async #compare<D extends object>(state: State<D>, known: Known): Promise<void> {
    // A run of which all files are in quarantine may start afresh.
    const startsAfresh = state.sequence === 0 && known.files.length === 0;
    const { on, checkpointId } = this.#tried ?? {};
    const comesAfterFailure = on === state.sequence && known.newest?.checkpointId === checkpointId;
    if (startsAfresh || comesAfterFailure) return;
    if (known.sequence === state.sequence && (await this.#isBuiltOn(state, known))) return;
    throw new CheckpointConflictError(this.#runId, state.sequence, known.sequence);
  }

  /**
   * Whether a State comes from this very run, and not from one of the same name that was deleted
   * and whose successor has come to the same sequence. It may build on any checkpoint, not only the newest.
   */
  async #isBuiltOn<D extends object>({ checkpointId }: State<D>, known: Known): Promise<boolean> {
    const { newest, sequence, files } = known;
    if (newest === undefined || newest.checkpointId === checkpointId) return true;
    // What is in quarantine, or can't be read, may be what it was built on.
    if (newest.sequence < sequence || newest.checkpointId === "") return true;
    const headers = await headersOf(this.#settings.fs, this.#folder, this.#runId, files);
    return headers.some((found) => found?.header.checkpointId === checkpointId);
  }

  /** Looks what is in the folder. */
  async #look(): Promise<Known> {
    const { fs, onListing } = this.#settings;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const listing = await list(fs, this.#folder);
      if (listing !== undefined) onListing(listing);
      const { newest: sequence = 0, checkpoints = [] } = listing ?? {};
      const found = checkpoints.at(-1);
      const newest = found === undefined ? undefined : await this.#open(found);
      if (found !== undefined && newest === undefined) continue;
      const files = [...checkpoints];
      return { sequence, newest, folder: undefined, files, found: sequence };
    }
    throw new Error(`${this.#folder} changed ${ATTEMPTS} times while it was read`);
  }

  /** Opens the newest file, to know it again; `undefined` when it is gone. */
  async #open(sequence: number): Promise<Newest | undefined> {
    const { fs } = this.#settings;
    const path = join(this.#folder, checkpointName(sequence));
    let file: number | undefined;
    try {
      file = await fs.open(path);
      const { id } = await fs.stat(file);
      const header = DocumentCodec.header(await fs.read(file, HEAD));
      return { sequence, id, checkpointId: header?.checkpointId ?? "", file };
    } catch (error) {
      if (file !== undefined) await fs.close(file).catch(() => {});
      if (codeOf(error) === "ENOENT") return undefined;
      // What is no file, or can't be read, has its name all the same.
      const found = await unless(["ENOENT"], fs.lstat(path), undefined);
      return found && { sequence, id: found.id, checkpointId: "", file: undefined };
    }
  }

  async #remove(sequence: number, found: number): Promise<void> {
    const { fs, durable } = this.#settings;
    const path = join(this.#folder, checkpointName(sequence));
    if (sequence > found) await unless(["ENOENT"], fs.unlink(path), undefined);
    else await discard(fs, this.#folder, this.#runId, sequence, durable);
  }
}
