import { dirname } from "node:path";
import { codeOf, type FileSystem, unless } from "./file-system.js";
import { syncFolder } from "./sync.js";

/** The folder of all runs. It is made when it is first needed. */
export class Root {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #durable: boolean;
  #ready: Promise<void> | undefined;

  constructor(fs: FileSystem, path: string, durable: boolean) {
    this.#fs = fs;
    this.#path = path;
    this.#durable = durable;
  }

  /** Sees to it that a run's folder is there for good, also when it was made by one who died at it. */
  async makeFolder(folder: string): Promise<void> {
    await this.#make();
    try {
      await unless(["EEXIST"], this.#fs.mkdir(folder), undefined);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      // The root was removed since.
      this.#ready = undefined;
      await this.#make();
      await unless(["EEXIST"], this.#fs.mkdir(folder), undefined);
    }
    if (this.#durable) await syncFolder(this.#fs, this.#path);
  }

  async #make(): Promise<void> {
    this.#ready ??= this.#create();
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw error;
    }
  }

  async #create(): Promise<void> {
    const fs = this.#fs;
    const missing = await this.#missing(this.#path);
    for (const folder of missing) {
      await unless(["EEXIST"], fs.mkdir(folder), undefined);
      if (this.#durable) await syncFolder(fs, dirname(folder));
    }
    // Whoever may not read what is around the root did not make it.
    if (this.#durable && missing.length === 0) {
      await unless(["EACCES", "EPERM"], syncFolder(fs, dirname(this.#path)), undefined);
    }
  }

  /** The folders on the way to this one that are not there yet, from the top down. */
  async #missing(folder: string): Promise<string[]> {
    const found = await unless(["ENOENT"], this.#fs.lstat(folder), undefined);
    if (found !== undefined || dirname(folder) === folder) return [];
    return [...(await this.#missing(dirname(folder))), folder];
  }
}
