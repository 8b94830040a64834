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

/** Options of {@link AppendFile}. */
export interface AppendFileOptions {
  /** The file. Its folder is created when needed. */
  readonly path: string;
  /** How many bytes may wait in memory while the disk is slow. */
  readonly maxPendingBytes: number;
  /** Repairs the end of an existing file when it is opened: a killed process may have left it torn. */
  readonly repair: (path: string, file: number) => void;
  /** Repairs torn writes of other processes, which may have been killed, in this range of the file. */
  readonly mend?: (path: string, file: number, from: number, to: number) => void;
  /** Called before each write. Returns `true` if it has moved the file away, and a new one is to be created. */
  readonly isFull?: (path: string, size: number, more: number, inode: number) => boolean;
  /** What to write once the disk accepts writes again, after some were dropped; nothing by default. */
  readonly notice?: (dropped: number) => string;
  /** Handles errors; must not throw. */
  readonly onError: (error: unknown) => void;
}

/** How long a write may take, in milliseconds. A longer one may be the scheduler's fault; two in a row are the disk's. */
const SLOW = 100;
/** How long writes then stay in the background, in milliseconds; doubled by each further slow write. */
const FIRST_REST = 100;
const LONGEST_REST = 10_000;
/** How long nothing is written after an error, in milliseconds. */
const PAUSE = 1000;
/** How many bytes to write between two checks for what other processes have written. */
const LOOK_BYTES = 64 * 1024;
/** The approximate size of the largest background write, in bytes. */
const BATCH = 1 << 20;

// Opening a pipe at this path must not block. Windows has no O_NONBLOCK.
const APPEND =
  constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NONBLOCK ?? 0);
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

const openLater = promisify(open);
const closeLater = promisify(close);

/**
 * An append-only file. Each piece is appended immediately, in one call, so it survives if the process is
 * killed, and other writers can't interleave with it. While the disk is slow, pieces wait in memory and are
 * written in the background; when too many wait, further ones are dropped and counted.
 */
export class AppendFile {
  readonly #options: AppendFileOptions;
  #file: number | undefined;
  /** The size after our last write, unless another process has written. */
  #size = 0;
  /** The size at the last check. */
  #seen = 0;
  #inode = 0;
  #queue: string[] = [];
  #pending = 0;
  #draining: Promise<void> | undefined;
  #dropped = 0;
  /** How many of the dropped pieces a notice has reported. */
  #noticed = 0;
  #retryAt = 0;
  #slowWrites = 0;
  /** When to write immediately again. */
  #directAt = 0;

  constructor(options: AppendFileOptions) {
    this.#options = options;
  }

  /** How many pieces were not written because too many waited or the write failed. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Writes a piece, or queues it; `false` if it was dropped. Never throws. */
  append(piece: string): boolean {
    const { dropped } = this;
    const started = performance.now();
    if (this.#draining !== undefined || started < this.#directAt) this.#wait(piece);
    else if (started < this.#retryAt) this.#dropped++;
    else this.#try(piece);
    return this.#dropped === dropped;
  }

  /** Opens the file, so that it is repaired and read before anything is written. Never throws. */
  open(): void {
    if (performance.now() < this.#retryAt) return;
    try {
      this.#open();
    } catch (error) {
      this.#failed(error, 0);
    }
  }

  /** Resolves when nothing is queued. */
  async flush(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining;
  }

  /** Closes the file once nothing is queued. Another piece opens it again. */
  async close(): Promise<void> {
    await this.flush();
    // No piece follows the last one that was dropped, so its notice is written on its own.
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

  /** The file to write to; `undefined` if it is not a regular file, on which a write could block. */
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

  /** Checks whether another process has written, since it may have been killed half-way. */
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

  /** Writes the queue in batches, directly again once the disk has recovered. */
  async #writeLater(): Promise<void> {
    let file: number | undefined;
    // Pieces of the same tick are written together.
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

  /** Writes immediately; after two slow writes in a row, the next ones go to the background for a while. */
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
      // Nothing more can be done for this file.
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
