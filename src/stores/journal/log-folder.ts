import { join } from "node:path";
import { type FileSystem, unless } from "../file/file-system.js";
import { namesIn } from "../file/listing.js";
import { makeFolder } from "../file/make-folder.js";
import { syncFolder } from "../file/sync.js";
import { logName, logNumber } from "./layout.js";
import { toLine } from "./line.js";

/** Comes before each batch of lines: a line that somebody left unfinished must not swallow the first of them. */
export const newline = Buffer.from("\n");

const sealLine = Buffer.concat([newline, toLine("seal", "{}")]);

/** The files of the log, as they are on the disk. */
export class LogFolder {
  readonly path: string;
  readonly #fs: FileSystem;
  readonly #durable: boolean;

  constructor(fs: FileSystem, path: string, durable: boolean) {
    this.#fs = fs;
    this.path = path;
    this.#durable = durable;
  }

  /** The path of a file. */
  file(number: number): string {
    return join(this.path, logName(number));
  }

  /** The numbers of the files that are there, lowest first. */
  async numbers(): Promise<number[]> {
    const names = (await namesIn(this.#fs, this.path)) ?? [];
    return names.flatMap((name) => logNumber(name) ?? []).sort((a, b) => a - b);
  }

  /** Creates a file, and the folder with the first. Fine if it is there. */
  async create(number: number): Promise<void> {
    const fs = this.#fs;
    if (number === 1) await makeFolder(fs, this.path, this.#durable);
    const file = await unless(["EEXIST"], fs.create(this.file(number)), undefined);
    if (file !== undefined) await fs.close(file);
    if (this.#durable) await syncFolder(fs, this.path);
  }

  /** Makes the folder and its names last, also when somebody created them who died at it. */
  async settle(): Promise<void> {
    await makeFolder(this.#fs, this.path, true);
    await syncFolder(this.#fs, this.path);
  }

  /** Whether an open file still has its name. */
  async hasName(number: number, open: number): Promise<boolean> {
    const found = await unless(["ENOENT"], this.#fs.lstat(this.file(number)), undefined);
    return found?.id === (await this.#fs.stat(open)).id;
  }

  /** Seals a file: one that is full, one whose seal was lost in a power cut, or one that was created too late. */
  async seal(number: number, open?: number): Promise<void> {
    const fs = this.#fs;
    const writer = open ?? (await fs.openToAppend(this.file(number), false));
    try {
      await fs.append(writer, sealLine);
      if (this.#durable) await fs.syncData(writer);
    } finally {
      if (open === undefined) await fs.close(writer).catch(() => {});
    }
  }
}
