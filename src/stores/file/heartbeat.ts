import { type FileSystem, unless } from "./file-system.js";

/** How often a heart beats, in milliseconds. */
export const BEAT = 1000;

const MARK = Buffer.from(".");

/**
 * Shows that this process lives, by a file that grows. It is made with the first beat, so that what is
 * over sooner costs nothing.
 */
export class Heartbeat {
  readonly #fs: FileSystem;
  readonly #path: string;
  readonly #timer: NodeJS.Timeout;
  #file: number | undefined;
  #last: Promise<void> = Promise.resolve();

  constructor(fs: FileSystem, path: string) {
    this.#fs = fs;
    this.#path = path;
    this.#timer = setInterval(() => {
      this.#last = this.#last.then(() => this.#beat()).catch(() => {});
    }, BEAT);
    // A run that waits for nothing that could still happen must not keep the process from its end.
    this.#timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#last;
    if (this.#file === undefined) return;
    await this.#fs.close(this.#file);
    await unless(["ENOENT"], this.#fs.unlink(this.#path), undefined);
  }

  async #beat(): Promise<void> {
    this.#file ??= await this.#fs.create(this.#path);
    await this.#fs.write(this.#file, MARK);
  }
}
