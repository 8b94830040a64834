import { join } from "node:path";
import { ConfigError } from "../errors.js";
import { callable, integer, text } from "../options.js";
import { folderName } from "../stores/disk/layout.js";

/** Where a log is: a folder with one for each run, or one file for all. */
export type LogPlace =
  | {
      /** Each run has its own file in `{root}/{runId}/`, beside its checkpoints if a FileStore has the same root. */
      readonly root: string;
      /** Not beside a root. */
      readonly path?: undefined;
    }
  | {
      /** One file for all runs. */
      readonly path: string;
      /** Not beside a path. */
      readonly root?: undefined;
    };

/** What observers that write files have in common. */
export interface FileObserverOptions {
  /** How many bytes may wait in memory while the disk is slow; at least 0, 8 MB by default. The rest is dropped and counted. */
  readonly maxPendingBytes?: number;
  /** Handles write errors; by default the first one is printed. */
  readonly onError?: (error: unknown) => void;
}

/** The checks of those options. */
export const fileObserverChecks = {
  root: text,
  path: text,
  maxPendingBytes: integer(0),
  onError: callable,
};

/** Refuses both places at once, and none. */
export function checkPlace(owner: string, { root, path }: LogPlace): void {
  if ((root === undefined) === (path === undefined)) {
    throw new ConfigError(owner, "must have either a root or a path");
  }
}

/** The file of a run. */
export function runPath(place: LogPlace, runId: string, fileName: string): string {
  return place.path ?? join(place.root, folderName(runId), fileName);
}

/** A file that is written to. */
interface OpenFile {
  readonly dropped: number;
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** What a file needs to know of where it is and who handles its errors. */
export interface FileSetting {
  readonly path: string;
  /** The run, when each has a file of its own; else `""`. */
  readonly run: string;
  readonly maxPendingBytes: number;
  readonly onError: (error: unknown) => void;
}

/** Of so many runs at once the files are held open; the others' are opened for each event. */
const OPEN_RUNS = 100;
const MAX_PENDING = 8 * 1024 * 1024;

/** The files that an observer writes: one, or one for each run in progress. */
export class RunFiles<F extends OpenFile> {
  readonly #options: LogPlace & FileObserverOptions;
  readonly #fileName: string;
  readonly #create: (setting: FileSetting) => F;
  readonly #files = new Map<string, F>();
  /** Files that were let go while something was still to be written. */
  readonly #closing = new Map<F, Promise<void>>();
  #dropped = 0;
  #failed = false;

  constructor(
    options: LogPlace & FileObserverOptions,
    fileName: string,
    create: (setting: FileSetting) => F,
  ) {
    this.#options = options;
    this.#fileName = fileName;
    this.#create = create;
  }

  /** How much was not written, in all files. */
  get dropped(): number {
    const files = [...this.#files.values(), ...this.#closing.keys()];
    return files.reduce((sum, file) => sum + file.dropped, this.#dropped);
  }

  /** The file that a run's events go to. */
  of(runId: string): F {
    const { path, root, maxPendingBytes = MAX_PENDING } = this.#options;
    const run = root === undefined ? "" : runId;
    const known = this.#files.get(run);
    if (known !== undefined) return known;
    const oldest = this.#files.size >= OPEN_RUNS ? this.#files.keys().next().value : undefined;
    if (oldest !== undefined) this.#release(oldest);
    const file = this.#create({
      path: path ?? runPath({ root }, run, this.#fileName),
      run,
      maxPendingBytes,
      onError: (error) => this.#report(error),
    });
    this.#files.set(run, file);
    return file;
  }

  /** A run has ended: its own file is not needed any more. */
  ended(runId: string): void {
    if (this.#options.root !== undefined) this.#release(runId);
  }

  async flush(): Promise<void> {
    const flushed = [...this.#files.values()].map((file) => file.flush());
    await Promise.all([...this.#closing.values(), ...flushed]);
  }

  async close(): Promise<void> {
    for (const run of [...this.#files.keys()]) this.#release(run);
    await this.flush();
  }

  /** Closes a file; what it dropped stays counted. */
  #release(run: string): void {
    const file = this.#files.get(run);
    if (file === undefined) return;
    this.#files.delete(run);
    const closed = file.close().finally(() => {
      this.#closing.delete(file);
      this.#dropped += file.dropped;
    });
    this.#closing.set(file, closed);
  }

  #report(error: unknown): void {
    const first = !this.#failed;
    this.#failed = true;
    try {
      if (this.#options.onError !== undefined) this.#options.onError(error);
      else if (first) console.error(`waymark: ${this.#fileName} can't be written.`, error);
    } catch (thrown) {
      if (first) console.error("waymark: onError failed.", thrown);
    }
  }
}
