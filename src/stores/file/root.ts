import { dirname } from "node:path";
import { codeOf, type FileSystem, unless } from "./file-system.js";
import { missing } from "./make-folder.js";
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
    const created = await missing(fs, this.#path);
    for (const folder of created) {
      await unless(["EEXIST"], fs.mkdir(folder), undefined);
      if (this.#durable) await syncFolder(fs, dirname(folder));
    }
    // Whoever may not read what is around the root did not make it.
    if (this.#durable && created.length === 0) {
      await unless(["EACCES", "EPERM"], syncFolder(fs, dirname(this.#path)), undefined);
    }
  }
}
