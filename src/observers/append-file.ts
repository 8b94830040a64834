import {
  close,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  open,
  openSync,
  statSync,
  write,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

/** What an {@link AppendFile} may leave to whoever knows what is in the file. */
export interface AppendFileOptions {
  /** The file; its folder is made when it is needed. */
  readonly path: string;
  /** How much may wait in memory, in bytes, while the disk is slow. */
  readonly maxPendingBytes: number;
  /** Mends the end of a file that a killed process may have left, when it is opened. */
  readonly repair: (path: string, file: number) => void;
  /** Mends what processes that were killed may have left between these places, where others have written too. */
  readonly mend?: (path: string, file: number, from: number, to: number) => void;
  /** Is asked before each write; may move the file out of the way, then says `true`. */
  readonly isFull?: (path: string, size: number, more: number, inode: number) => boolean;
  /** What to write when pieces were dropped and the disk takes more again; nothing by default. */
  readonly notice?: (dropped: number) => string;
  /** Handles errors; must not throw. */
  readonly onError: (error: unknown) => void;
}

/** A write that takes longer, in milliseconds, is slow. One may be the scheduler's fault; two in a row are the disk's. */
const SLOW = 100;
/** How long the disk is then left to the background, in milliseconds; twice as long for each slow write that follows. */
const FIRST_REST = 100;
const LONGEST_REST = 10_000;
/** After an error nothing is tried for so many milliseconds. */
const PAUSE = 1000;
/** After so many bytes, and at the end, it is looked at what others have written. */
const LOOK_BYTES = 64 * 1024;
/** One write of the background is about so large at most. */
const BATCH = 1 << 20;

// A pipe put in its place must not be waited for; Windows has no O_NONBLOCK.
const APPEND =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0);
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

const openLater = promisify(open);
const closeLater = promisify(close);

/**
 * A file that only grows. A piece is written at once, by one call that appends: it survives the death
 * of the process, and other writers can't get between. When the disk is slow, pieces wait in memory
 * and are written in the background, so that nobody waits for them; when too many wait, the next are
 * dropped and counted.
 */
export class AppendFile {
  readonly #options: AppendFileOptions;
  #file: number | undefined;
  /** The size after our last write, if nobody else has written. */
  #size = 0;
  /** The size when it was last looked at. */
  #seen = 0;
  #inode = 0;
  #queue: string[] = [];
  #pending = 0;
  #draining: Promise<void> | undefined;
  #dropped = 0;
  /** How many of them are in a notice. */
  #noticed = 0;
  #retryAt = 0;
  #slowWrites = 0;
  /** When to write at once again. */
  #directAt = 0;

  constructor(options: AppendFileOptions) {
    this.#options = options;
  }

  /** How many pieces were not written, because too many waited or the disk refused them. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Writes a piece, or keeps it for later; `false` when it was dropped. Never throws. */
  append(piece: string): boolean {
    const { dropped } = this;
    const started = performance.now();
    if (this.#draining !== undefined || started < this.#directAt) this.#wait(piece);
    else if (started < this.#retryAt) this.#dropped++;
    else this.#try(piece);
    return this.#dropped === dropped;
  }

  /** Opens the file, so that it is mended and known before anything is written; never throws. */
  open(): void {
    if (performance.now() < this.#retryAt) return;
    try {
      this.#open();
    } catch (error) {
      this.#failed(error, 0);
    }
  }

  /** Resolves when nothing waits any more. */
  async flush(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
  }

  /** Lets go of the file once nothing waits any more; another piece opens it again. */
  async close(): Promise<void> {
    await this.flush();
    // No piece came after the last that was dropped: it must be reported all the same.
    if (this.#notice() !== "" && performance.now() >= this.#retryAt) {
      this.#queue.push("");
      this.#drain();
      await this.flush();
    }
    try {
      this.#look();
    } catch (error) {
      this.#options.onError(error);
    }
    this.#shut();
  }

  #try(piece: string): void {
    try {
      if (this.#open() === undefined) this.#wait(piece);
      else this.#timed(() => this.#writeNow(piece));
    } catch (error) {
      this.#failed(error, 1);
    }
  }

  /** The file to write to at once; `undefined` if it is none that such a write can't block on. */
  #open(): number | undefined {
    if (this.#file !== undefined) return this.#file;
    const { path, repair } = this.#options;
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && !found.isFile()) return undefined;
    if (found === undefined) mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
    this.#file = openSync(path, APPEND, FILE_MODE);
    if (found !== undefined) repair(path, this.#file);
    const { size, ino } = fstatSync(this.#file);
    this.#size = size;
    this.#seen = size;
    this.#inode = ino;
    return this.#file;
  }

  #writeNow(piece: string): void {
    const { path, isFull } = this.#options;
    const { dropped } = this;
    const bytes = Buffer.from(this.#notice() + piece);
    if (isFull?.(path, this.#size, bytes.length, this.#inode)) this.#shut();
    const target = this.#open();
    if (target === undefined) throw new Error(`${path} is no longer a file`);
    for (let at = 0; at < bytes.length; ) at += writeSync(target, bytes, at);
    this.#noticed = dropped;
    this.#size += bytes.length;
    if (this.#size - this.#seen > LOOK_BYTES) this.#look();
  }

  /** Looks whether somebody else has written too, and may have been killed while doing so. */
  #look(): void {
    if (this.#file === undefined) return;
    const { path, mend } = this.#options;
    const { size } = fstatSync(this.#file);
    if (size !== this.#size) mend?.(path, this.#file, this.#seen, size);
    this.#size = size;
    this.#seen = size;
  }

  #wait(piece: string): void {
    if (this.#pending + piece.length > this.#options.maxPendingBytes) {
      this.#dropped++;
    } else {
      this.#queue.push(piece);
      this.#pending += piece.length;
      this.#drain();
    }
  }

  #drain(): void {
    this.#draining ??= this.#writeLater().finally(() => {
      this.#draining = undefined;
      if (this.#queue.length > 0) this.#drain();
    });
  }

  /** Writes what waits, batch by batch, until the disk may be trusted again. */
  async #writeLater(): Promise<void> {
    let file: number | undefined;
    // What comes in until the next turn goes together.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      while (this.#queue.length > 0) {
        const batch = this.#nextBatch();
        try {
          if (this.#file !== undefined && performance.now() >= this.#directAt) {
            this.#timed(() => this.#writeNow(batch.join("")));
          } else {
            file ??= this.#file ?? (await openLater(this.#options.path, "a", FILE_MODE));
            const { dropped } = this;
            await writeLater(file, Buffer.from(this.#notice() + batch.join("")));
            this.#noticed = dropped;
          }
        } catch (error) {
          this.#failed(error, batch.filter((piece) => piece !== "").length);
          return;
        } finally {
          for (const piece of batch) this.#pending -= piece.length;
        }
      }
    } finally {
      if (file !== undefined && file !== this.#file) await closeLater(file);
    }
  }

  /** Writes at once; after two slow writes in a row that is left alone for a while. */
  #timed(write: () => void): void {
    const started = performance.now();
    write();
    const ended = performance.now();
    this.#slowWrites = ended - started > SLOW ? this.#slowWrites + 1 : 0;
    if (this.#slowWrites < 2) return;
    this.#directAt = ended + Math.min(LONGEST_REST, FIRST_REST * 2 ** (this.#slowWrites - 2));
  }

  #nextBatch(): string[] {
    let length = 0;
    let count = 0;
    for (const piece of this.#queue) {
      if (count > 0 && length + piece.length > BATCH) break;
      length += piece.length;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  #notice(): string {
    const count = this.#dropped - this.#noticed;
    return count === 0 ? "" : (this.#options.notice?.(count) ?? "");
  }

  #failed(error: unknown, lost: number): void {
    this.#dropped += lost;
    this.#shut();
    this.#retryAt = performance.now() + PAUSE;
    this.#options.onError(error);
  }

  #shut(): void {
    const file = this.#file;
    this.#file = undefined;
    try {
      if (file !== undefined) closeSync(file);
    } catch {
      // What was written is written; there is nothing left to do about the rest.
    }
  }
}

function writeLater(file: number, bytes: Uint8Array, at = 0): Promise<void> {
  return new Promise((resolve, reject) => {
    write(file, bytes, at, bytes.length - at, null, (error, count) => {
      if (error !== null) reject(error);
      else if (at + count < bytes.length) writeLater(file, bytes, at + count).then(resolve, reject);
      else resolve();
    });
  });
}
