import { CheckpointCorruptionError } from "../../errors.js";
import type { State } from "../../state/state.js";
import type { FileSystem } from "../file/file-system.js";
import { faultOf, type Line, runKey, scanBack, toBuffer } from "./line.js";
import type { LogFolder } from "./log-folder.js";
import type { Loaded } from "./reader.js";
import { areLinked, type Read, type RecordCodec, readRecord } from "./record.js";

/** How much of the end of the log to read, in bytes; more where the first is not enough. */
const WINDOWS = [64 * 1024, 1024 * 1024];

/**
 * Loads the newest State of a run out of the end of the log, without reading the rest: for a process
 * that has just started and wants to know where one run is.
 *
 * It does so only where that is sure. Nobody builds on a record before it is known to count, so one
 * that the next line of its run names has counted; and when that next line is the run's last, and
 * nothing is between the two, it counts too. Where that can't be seen, be it for a second writer, a deletion, a
 * line that is broken or a log that has just been sealed, the whole log has to be read.
 */
export class Tail {
  readonly #fs: FileSystem;
  readonly #folder: LogFolder;
  readonly #codec: RecordCodec;

  constructor(fs: FileSystem, folder: LogFolder, codec: RecordCodec) {
    this.#fs = fs;
    this.#folder = folder;
    this.#codec = codec;
  }

  /** The newest State of a run; `undefined` when the end of the log does not tell. */
  async load<D extends object>(runId: string): Promise<Loaded<D> | undefined> {
    const number = (await this.#folder.numbers()).at(-1);
    if (number === undefined) return undefined;
    const path = this.#folder.file(number);
    const records = await this.#newest(path, runId);
    if (records === undefined) return undefined;
    const state = await this.#decode<D>(records.chain, path);
    if (state === undefined) return undefined;
    const { checkpointId, sequence } = state;
    const saved = state.savedAs({ checkpointId, sequence, bytes: records.bytes });
    return { state: saved, head: checkpointId };
  }

  async #decode<D extends object>(
    chain: readonly Read[],
    path: string,
  ): Promise<State<D> | undefined> {
    try {
      return await this.#codec.decode<D>(chain, path);
    } catch (error) {
      // Whoever reads the whole log tells what is wrong, and finds an older one.
      if (error instanceof CheckpointCorruptionError) return undefined;
      throw error;
    }
  }

  async #newest(path: string, runId: string): Promise<Newest | undefined> {
    for (const window of WINDOWS) {
      // Whoever reads the whole log tells what is wrong.
      const end = await this.#fs.end(path, window).catch(() => undefined);
      const found = end && newestIn(toBuffer(end.bytes), runId, path);
      if (found !== undefined || end === undefined || end.size <= window) return found;
    }
    return undefined;
  }
}

/** The records that make up the newest State of a run, from a snapshot on, and how long the last of them is. */
interface Newest {
  readonly chain: readonly Read[];
  readonly bytes: number;
}

function newestIn(bytes: Buffer, runId: string, where: string): Newest | undefined {
  const key = runKey(runId);
  const textOf = ({ offset, length }: Line): Buffer => bytes.subarray(offset, offset + length);
  const lines: Line[] = [];
  let isSure = true;
  scanBack(bytes, (line) => {
    const isOwn = line.run === key;
    isSure = line.kind !== "damage" && line.kind !== "seal" && !(isOwn && line.kind === "delete");
    if (!isSure || line.kind === "damage") return true;
    if (isOwn) lines.unshift(line);
    // One that came later and names another run may be this run's, and broken.
    else isSure = lines.length > 0 || faultOf(textOf(line)) === undefined;
    return !isSure || (lines.length > 1 && lines.some(({ kind }) => kind === "snapshot"));
  });
  const snapshot = lines.findLastIndex(({ kind }) => kind === "snapshot");
  const last = lines.at(-1);
  // The one before the last tells whether the last counts.
  if (!isSure || last === undefined || lines.length < 2 || snapshot < 0) return undefined;
  try {
    const reads = lines.map((line) => readRecord(textOf(line), where, runId));
    return areLinked(reads) ? { chain: reads.slice(snapshot), bytes: last.length } : undefined;
  } catch {
    // Whoever reads the whole log tells what is wrong.
    return undefined;
  }
}
