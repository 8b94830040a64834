import { join } from "node:path";
import { ConfigError } from "../errors.js";
import type { AnyEvent } from "../events.js";
import { type Check, callable, checkOptions, integer, text } from "../options.js";
import { folderName } from "../stores/disk/layout.js";

/** The name of a run's log, in the run's folder. */
export const LOG_FILE = "events.jsonl";
/** The name of a run's report, in the run's folder. */
export const PROGRESS_FILE = "progress.md";

/** Where logs are: in a folder for each run, or in one file for all. */
export type LogPlace =
  | {
      /** Each run has its own file in `{root}/{runId}/`, beside its checkpoints if a FileStore has the same root. */
      readonly root: string;
      /** Excluded by `root`. */
      readonly path?: undefined;
    }
  | {
      /** One file for all runs. */
      readonly path: string;
      /** Excluded by `path`. */
      readonly root?: undefined;
    };

/** Options of all observers that write files. */
export interface FileObserverOptions {
  /** How many bytes may wait in memory while the disk is slow; at least 0, 8 MB by default. The rest is dropped and counted. */
  readonly maxPendingBytes?: number;
  /** Handles write errors; by default the first one is printed. */
  readonly onError?: (error: unknown) => void;
}

/** The checks of {@link FileObserverOptions}. */
export const fileObserverChecks = {
  root: text,
  path: text,
  maxPendingBytes: integer(0),
  onError: callable,
};

/** Requires exactly one of `root` and `path`. */
export function checkPlace(owner: string, { root, path }: LogPlace): void {
  if ((root === undefined) === (path === undefined)) {
    throw new ConfigError(owner, "must have either a root or a path");
  }
}

/** Refuses what is not the place of a log. */
export const checkLogPlace: Check = (name, value) => {
  checkOptions(name, value, { root: text, path: text });
  checkPlace(name, value as LogPlace);
};

export function runPath(place: LogPlace, runId: string, fileName: string): string {
  return place.path ?? join(place.root, folderName(runId), fileName);
}

interface OpenFile {
  readonly dropped: number;
  flush(): Promise<void>;
  close(): Promise<void>;
}

export interface FileSetting {
  readonly path: string;
  /** The run, if each has its own file; otherwise `""`. */
  readonly run: string;
  readonly maxPendingBytes: number;
  readonly onError: (error: unknown) => void;
}

/** The maximum number of files that are kept open. */
const OPEN_RUNS = 100;
const MAX_PENDING = 8 * 1024 * 1024;

/** The base of observers that write files: one, or one for each run in progress. */
export abstract class FileObserver<F extends OpenFile> {
  readonly #options: LogPlace & FileObserverOptions;
  readonly #fileName: string;
  readonly #create: (setting: FileSetting) => F;
  readonly #files = new Map<string, F>();
  /** Files that are being closed while something is still queued. */
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

  abstract onEvent(event: AnyEvent): void;

  /** How many pieces were not written, in all files. */
  get dropped(): number {
    const files = [...this.#files.values(), ...this.#closing.keys()];
    return files.reduce((sum, file) => sum + file.dropped, this.#dropped);
  }

  /** The file that a run's events go to. */
  protected fileOf(runId: string): F {
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

  /** Closes the file of a run that has ended. */
  protected ended(runId: string): void {
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

  /** Closes a file, and keeps counting what it dropped. */
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
      else if (first) console.error(`waymark: writing ${this.#fileName} failed.`, error);
    } catch (thrown) {
      if (first) console.error("waymark: onError failed.", thrown);
    }
  }
}
