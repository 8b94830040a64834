import { join } from "node:path";
import type { StoreContext } from "../../checkpoint/store.js";
import type { CheckpointCorruptionError } from "../../errors.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { digits, QUARANTINE } from "../file/layout.js";
import { namesIn } from "../file/listing.js";
import { makeFolder } from "../file/make-folder.js";
import { syncFolder } from "../file/sync.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import { corrupt } from "./record.js";
import type { CorruptLine } from "./view.js";

type Emit = StoreContext["emit"];

/**
 * Copies of lines that are not what was written, where a person can look at them. The lines
 * themselves stay where they are until they are compacted away.
 */
export class Quarantine {
  readonly #fs: FileSystem;
  readonly #durable: boolean;
  readonly #log: Log;
  readonly #files: LineFiles;

  constructor(fs: FileSystem, durable: boolean, log: Log, files: LineFiles) {
    this.#fs = fs;
    this.#durable = durable;
    this.#log = log;
    this.#files = files;
  }

  /** A run's folder for these copies, and what is in it. */
  async of(runId: string): Promise<{ aside: string; names: readonly string[] }> {
    const aside = join(this.#files.folder(runId), QUARANTINE);
    return { aside, names: (await namesIn(this.#fs, aside)) ?? [] };
  }

  /** Copies a line of a run, and tells of it the first time; gives the error for it. */
  async add(runId: string, line: CorruptLine, emit?: Emit): Promise<CheckpointCorruptionError> {
    const { sequence, expected, actual } = line;
    const [text] = (await this.#files.read(runId, [line])) ?? [];
    if (text !== undefined) await this.#copy(this.#files.folder(runId), line, text, emit);
    const path = this.#files.path(runId, line);
    return corrupt(sequence === 0 ? path : `record ${sequence} in ${path}`, expected, actual);
  }

  /**
   * Copies what is no line of any run, unless it looks like what a crash leaves behind.
   *
   * @param isSeenTo - says whether lines that name this run are copied as that run's.
   */
  async addDamages(isSeenTo: (run: string) => boolean, emit?: Emit): Promise<void> {
    for (const { log: file, offset, length, torn, run } of this.#log.damages.all) {
      if (torn || (run !== undefined && isSeenTo(run))) continue;
      const spot = { file, inLog: true, offset, length };
      const [text] = (await this.#files.read("", [spot])) ?? [];
      const [expected, actual] = ["a line of a journal", "something else"];
      const line = { ...spot, sequence: 0, expected, actual };
      if (text !== undefined) await this.#copy(this.#log.folder, line, text, emit);
    }
  }

  /** If that can't be done, the next older record is used all the same. */
  async #copy(folder: string, line: CorruptLine, text: Uint8Array, emit: Emit): Promise<void> {
    const fs = this.#fs;
    const { sequence, inLog, file, offset, expected, actual } = line;
    const aside = join(folder, QUARANTINE);
    const where = `${inLog ? "log" : "records"}_${digits(file)}.${offset}`;
    const path = join(aside, `record_${digits(sequence)}.${where}.json`);
    try {
      await makeFolder(fs, folder, this.#durable);
      await makeFolder(fs, aside, this.#durable);
      const copy = await unless(["EEXIST"], fs.create(path), undefined);
      if (copy === undefined) return;
      try {
        await fs.write(copy, text);
        if (this.#durable) await fs.sync(copy);
      } finally {
        await fs.close(copy);
      }
      if (this.#durable) await syncFolder(fs, aside);
      emit?.("checkpoint.quarantine", { file: path, expected, actual });
    } catch (error) {
      const problem = `record ${sequence} is corrupt, and could not be copied to ${path}: ${String(error)}`;
      emit?.("checkpoint.error", { action: "load", node: "", error: problem });
    }
  }
}
