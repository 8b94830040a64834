import { join } from "node:path";
import { type HistoryEntry, isAt, isNewest, type StoreContext } from "../../checkpoint/store.js";
import type { DocumentCodec } from "../../codecs/document.js";
import { CheckpointCorruptionError } from "../../errors.js";
import type { State } from "../../state/state.js";
import type { FileSystem } from "./file-system.js";
import { checkpointName, QUARANTINE } from "./layout.js";
import { type Listing, list } from "./listing.js";
import { nothingLeft } from "./nothing-left.js";
import { quarantine } from "./quarantine.js";
import { headersOf, readRecord } from "./record.js";
import type { Wanted } from "./whole-runs.js";

/** How often to look again at a folder in which files come and go. */
const ATTEMPTS = 100;

/** What a reader needs of its store. */
export interface ReaderSettings {
  readonly fs: FileSystem;
  readonly durable: boolean;
  readonly codec: DocumentCodec;
  /** Is told what is in the folder whenever it was looked at. */
  readonly onListing: (folder: string, listing: Listing) => void;
}

/** A checkpoint that is not what was written. */
interface Corrupt {
  readonly file: string;
  readonly error: CheckpointCorruptionError;
}

/** Reads one run's checkpoints. */
export class RunReader {
  readonly #settings: ReaderSettings;
  readonly #folder: string;
  readonly #runId: string;

  constructor(folder: string, runId: string, settings: ReaderSettings) {
    this.#folder = folder;
    this.#runId = runId;
    this.#settings = settings;
  }

  /**
   * The newest State that is whole, or the newest of those asked for. What is corrupt is set aside.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when there are only corrupt ones.
   */
  async load<D extends object>(at: Wanted, emit: StoreContext["emit"]): Promise<State<D>> {
    const corrupt: Corrupt[] = [];
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const listing = attempt === 0 ? await this.#look(at) : await this.#look({});
      const found = await this.#newest<D>(listing, at, corrupt, emit);
      if (found === "changed") continue;
      if (found !== undefined) return found;
      const runId = this.#runId;
      const faults = corrupt.map(({ error }) => error);
      const [aside, quarantined] = [join(this.#folder, QUARANTINE), listing?.quarantined ?? []];
      throw nothingLeft({ runId, at, faults, aside, quarantined });
    }
    throw new Error(`${this.#folder} changed ${ATTEMPTS} times while it was read`);
  }

  /** The checkpoints, newest first, out of their headers. */
  async history(): Promise<HistoryEntry[]> {
    const { fs } = this.#settings;
    const { checkpoints = [] } = (await list(fs, this.#folder)) ?? {};
    const headers = await headersOf(fs, this.#folder, this.#runId, [...checkpoints].reverse());
    return headers.flatMap((found) => {
      if (found === undefined) return [];
      const { sequence, step, node, status, timestamp, checkpointId, parentId, reason } =
        found.header;
      const { bytes } = found;
      const entry = { sequence, step, node, status, timestamp, checkpointId, parentId, reason };
      return [{ ...entry, bytes }];
    });
  }

  /** What is in the folder; where a sequence is wanted, that it is there is believed without looking. */
  async #look({ sequence }: Wanted): Promise<Listing | undefined> {
    if (sequence !== undefined)
      return { checkpoints: [sequence], newest: sequence, quarantined: [], temporaries: [] };
    const listing = await list(this.#settings.fs, this.#folder);
    if (listing !== undefined) this.#settings.onListing(this.#folder, listing);
    return listing;
  }

  async #newest<D extends object>(
    listing: Listing | undefined,
    at: Wanted,
    corrupt: Corrupt[],
    emit: StoreContext["emit"],
  ): Promise<State<D> | "changed" | undefined> {
    for (const sequence of await this.#candidates(listing?.checkpoints ?? [], at)) {
      const path = join(this.#folder, checkpointName(sequence));
      if (corrupt.some(({ file }) => file === path)) continue;
      const read = await this.#read<D>(path, sequence);
      if (read === undefined) return "changed";
      if (read instanceof CheckpointCorruptionError) {
        if (!(await this.#setAside(sequence, read, emit))) return "changed";
        corrupt.push({ file: path, error: read });
      } else if (isAt(at, read)) {
        // What comes next goes after all that was ever there, also after what is in quarantine now.
        const place = isNewest(at) ? (listing?.newest ?? sequence) : sequence;
        const { checkpointId, bytes } = read;
        return read.savedAs({ checkpointId, sequence: place, bytes });
      }
    }
    return undefined;
  }

  /** Which files to read, newest first: those whose header fits, and those that have none to look at. */
  async #candidates(checkpoints: readonly number[], at: Wanted): Promise<number[]> {
    const sequences = checkpoints.toReversed();
    if (at.sequence !== undefined) return sequences.filter((one) => one === at.sequence);
    if (isNewest(at)) return sequences;
    const headers = await headersOf(this.#settings.fs, this.#folder, this.#runId, sequences);
    return sequences.filter((_, index) => {
      const header = headers[index]?.header;
      return header === undefined || isAt(at, header);
    });
  }

  /** The State in a file, what is wrong with it, or `undefined` when it is gone. What is refused is thrown. */
  async #read<D extends object>(
    path: string,
    sequence: number,
  ): Promise<State<D> | CheckpointCorruptionError | undefined> {
    const { fs, codec } = this.#settings;
    const bytes = await readRecord(fs, path);
    if (bytes === undefined) return undefined;
    try {
      const { state } = await codec.decode<D>(bytes, path, { runId: this.#runId, sequence });
      const { checkpointId } = state;
      return state.savedAs({ checkpointId, sequence, bytes: bytes.length });
    } catch (error) {
      if (error instanceof CheckpointCorruptionError) return error;
      throw error;
    }
  }

  /**
   * Moves a corrupt file to quarantine. If that can't be done the next older is used all the same.
   *
   * @returns whether it is to be passed over; not when it is gone, or is whole by now.
   */
  async #setAside(
    sequence: number,
    { expected, actual }: CheckpointCorruptionError,
    emit: StoreContext["emit"],
  ): Promise<boolean> {
    const { fs, durable } = this.#settings;
    const path = join(this.#folder, checkpointName(sequence));
    const isBad = async (): Promise<boolean> =>
      (await this.#read(path, sequence)) instanceof CheckpointCorruptionError;
    try {
      const file = await quarantine(fs, this.#folder, sequence, durable, isBad);
      if (file !== undefined) emit?.("checkpoint.quarantine", { file, expected, actual });
      return file !== undefined;
    } catch (error) {
      const problem = `${path} is corrupt, and could not be moved to quarantine: ${String(error)}`;
      emit?.("checkpoint.error", { action: "load", node: "", error: problem });
      return true;
    }
  }
}
