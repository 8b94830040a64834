import {
  close,
  closeSync,
  constants,
  fstatSync,
  futimesSync,
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
  /** Mends the end of a file that a killed process may have left; may read the open file. */
  readonly repair: (path: string, file: number) => void;
  /** Is asked before each write; may move the file out of the way, then says `true`. */
  readonly isFull?: (path: string, size: number, more: number, inode: number) => boolean;
  /** What to write when pieces were dropped and the disk takes more again; nothing by default. */
  readonly notice?: (dropped: number) => string;
  /** Is told what went wrong; must not throw. */
  readonly onError: (error: unknown) => void;
}

/** What takes longer, in milliseconds, is the disk's fault and not the scheduler's. */
const SLOW = 100;
/** After an error nothing is tried for so many milliseconds. */
const PAUSE = 1000;
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
  /** The size after our last write; another size says that somebody else has written. */
  #size = 0;
  #inode = 0;
  #queue: string[] = [];
  #pending = 0;
  #draining: Promise<void> | undefined;
  #dropped = 0;
  /** How many of them are in a notice. */
  #noticed = 0;
  #retryAt = 0;
  #slow = false;

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
    if (this.#draining !== undefined || this.#slow) this.#wait(piece);
    else if (started < this.#retryAt) this.#dropped++;
    else this.#try(piece, started);
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
    this.#shut();
  }

  #try(piece: string, started: number): void {
    try {
      const file = this.#open();
      if (file === undefined) this.#wait(piece);
      else this.#writeNow(file, piece);
    } catch (error) {
      this.#failed(error, 1);
    }
    this.#observe(started);
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
    this.#inode = ino;
    return this.#file;
  }

  #writeNow(file: number, piece: string): void {
    const { path, repair, isFull } = this.#options;
    const { size } = fstatSync(file);
    let target: number | undefined = file;
    if (isFull?.(path, size, piece.length, this.#inode)) {
      this.#shut();
      target = this.#open();
      if (target === undefined) throw new Error(`${path} is no file any more`);
    } else if (size !== this.#size) {
      // Somebody else has written, and may have been killed while doing so.
      repair(path, file);
      this.#size = size;
    }
    const { dropped } = this;
    const bytes = Buffer.from(this.#notice() + piece);
    for (let at = 0; at < bytes.length; ) at += writeSync(target, bytes, at);
    this.#size += bytes.length;
    this.#noticed = dropped;
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

  /** Writes what waits, batch by batch. */
  async #writeLater(): Promise<void> {
    let file: number | undefined;
    // What comes in until the next turn goes together.
    await new Promise((resolve) => setImmediate(resolve));
    try {
      while (this.#queue.length > 0) {
        const batch = this.#nextBatch();
        const started = performance.now();
        try {
          file ??= this.#file ?? (await openLater(this.#options.path, "a", FILE_MODE));
          const { dropped } = this;
          await writeLater(file, Buffer.from(this.#notice() + batch.join("")));
          this.#noticed = dropped;
        } catch (error) {
          this.#failed(error, batch.length);
          return;
        } finally {
          for (const piece of batch) this.#pending -= piece.length;
        }
        this.#observe(started);
      }
    } finally {
      if (file !== undefined && file !== this.#file) await closeLater(file);
    }
  }

  /** After a slow write the next ones go to the background, until one of those was quick. */
  #observe(started: number): void {
    this.#slow = performance.now() - started > SLOW;
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

/**
 * The size of a file whose end is torn: not whole, and nobody is writing it. `undefined` for any other.
 *
 * A size can be seen while somebody is half-way through a write. Setting a time waits until they are
 * done; if the file has not grown by then, its end stays as it is for ever.
 */
export function tornSize(file: number, isWhole: (size: number) => boolean): number | undefined {
  for (let { size } = fstatSync(file); !isWhole(size); ) {
    const now = new Date();
    futimesSync(file, now, now);
    const later = fstatSync(file).size;
    if (later === size) return size;
    size = later;
  }
  return undefined;
}

/** Writes over a part of a file that nobody will write to any more; the file does not get shorter. */
export function overwrite(path: string, bytes: Uint8Array, at: number): void {
  // A file that is open to append writes nowhere but at its end.
  const file = openSync(path, "r+");
  try {
    writeSync(file, bytes, 0, bytes.length, at);
  } finally {
    closeSync(file);
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
