import { type HistoryEntry, isAt, isNewest, type StoreContext } from "../../checkpoint/store.js";
import { CheckpointCorruptionError } from "../../errors.js";
import type { State } from "../../state/state.js";
import { nothingLeft } from "../file/nothing-left.js";
import type { Wanted } from "../file/whole-runs.js";
import { partsOf } from "./line.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import type { Quarantine } from "./quarantine.js";
import {
  areLinked,
  parseRecordHeader,
  type Read,
  type RecordCodec,
  type RecordHeader,
  readRecord,
} from "./record.js";
import { ATTEMPTS, type Resolver } from "./resolver.js";
import type { CorruptLine, Entry, Known, RunView } from "./view.js";

/** What a reader needs of its store. */
export interface ReaderSettings {
  readonly codec: RecordCodec;
  readonly log: Log;
  readonly files: LineFiles;
  readonly resolver: Resolver;
  readonly quarantine: Quarantine;
}

/** A State that was loaded. */
export interface Loaded<D extends object> {
  readonly state: State<D>;
  /** The id of the newest record of its run. */
  readonly head: string;
}

/** Reads the records of runs. */
export class JournalReader {
  readonly #settings: ReaderSettings;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
  }

  /**
   * The newest State that is whole, or the newest of those asked for. What is corrupt is set aside.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when there are only corrupt ones.
   */
  load<D extends object>(
    view: RunView,
    at: Wanted,
    emit: StoreContext["emit"],
  ): Promise<Loaded<D>> {
    const { quarantine } = this.#settings;
    let fresh = false;
    return this.#read(view, async (known) => {
      const corrupt = [...known.corrupt];
      // The run may go on while it is read; what is loaded must not pass for what came after it.
      const { head, sequence } = known;
      const state = await this.#newest<D>(view, known, at, sequence, corrupt);
      // What looks corrupt may only have been looked for where it is not any more.
      const isSure = corrupt.length === 0 || fresh;
      fresh = true;
      if (state === "changed" || !isSure) return undefined;
      await quarantine.addDamages((run) => run === view.key, emit);
      const faults: CheckpointCorruptionError[] = [];
      for (const line of corrupt) faults.push(await quarantine.add(view.runId, line, emit));
      if (state === undefined) {
        const { runId } = view;
        const { aside, names: quarantined } = await quarantine.of(runId);
        throw nothingLeft({ runId, at, faults, aside, quarantined });
      }
      return { state, head: head?.id ?? "" };
    });
  }

  /** The checkpoints that are kept, newest first. Nothing is verified. */
  history(view: RunView): Promise<HistoryEntry[]> {
    return this.#read(view, async ({ kept }) => {
      const entries = [...kept].reverse();
      const headers = await this.headers(view, entries);
      return headers?.flatMap((header, index) => {
        if (header === undefined) return [];
        const { sequence, step, node, status, timestamp, checkpointId, parentId, reason } = header;
        const entry = { sequence, step, node, status, timestamp, checkpointId, parentId, reason };
        return [{ ...entry, bytes: entries[index]?.length ?? 0 }];
      });
    });
  }

  /** The header of a run's newest record that can be read. */
  newest(view: RunView): Promise<RecordHeader | "unreadable" | "none"> {
    return this.#read(view, async ({ kept, isEmpty }) => {
      for (const entry of [...kept].reverse()) {
        const headers = await this.headers(view, [entry]);
        if (headers === undefined) return undefined;
        if (headers[0] !== undefined) return headers[0];
      }
      return isEmpty ? "none" : "unreadable";
    });
  }

  /** The headers of these records; `undefined` when a file is gone. A record that is no record has none. */
  async headers(
    { runId }: RunView,
    entries: readonly Entry[],
  ): Promise<(RecordHeader | undefined)[] | undefined> {
    const texts = await this.#settings.files.read(runId, entries);
    return texts?.map((text) => {
      const parts = partsOf(text);
      return parts && parseRecordHeader(parts.header);
    });
  }

  /** What `action` makes of a run; again when it gives nothing, because a file went away meanwhile. */
  async #read<T>(view: RunView, action: (known: Known) => Promise<T | undefined>): Promise<T> {
    const { log, resolver, files } = this.#settings;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const result = await action(await resolver.known(view));
      if (result !== undefined) return result;
      view.known = undefined;
      await log.inTurn(() => log.refresh());
    }
    throw new Error(`${files.folder(view.runId)} changed ${ATTEMPTS} times while it was read`);
  }

  async #newest<D extends object>(
    view: RunView,
    known: Known,
    at: Wanted,
    newest: number,
    corrupt: CorruptLine[],
  ): Promise<State<D> | "changed" | undefined> {
    const { codec, files } = this.#settings;
    const { runId } = view;
    const kept = known.kept
      .toReversed()
      .filter(({ sequence }) => (at.sequence ?? sequence) === sequence);
    const isFound = isNewest(at) || at.sequence !== undefined;
    const headers = isFound ? [] : await this.headers(view, kept);
    if (headers === undefined) return "changed";
    for (const [index, entry] of kept.entries()) {
      const header = headers[index];
      const chain = known.chainOf(entry);
      if (chain === undefined || (header !== undefined && !isAt(at, header))) continue;
      const reads = await this.#chain(view, known, chain, corrupt);
      if (reads === "changed") return reads;
      if (reads === undefined) continue;
      const path = files.path(runId, entry);
      let state: State<D>;
      try {
        state = await codec.decode<D>(reads, path);
      } catch (error) {
        if (!(error instanceof CheckpointCorruptionError)) throw error;
        // Its hash fits, what it holds does not: somebody has changed it who could make a hash.
        const { expected, actual } = error;
        const spoiled = chain[await codec.firstSpoiled(reads, path)] ?? entry;
        known.spoil(spoiled);
        corrupt.push({ ...spoiled, expected, actual });
        continue;
      }
      if (!isAt(at, state)) continue;
      // What comes next goes after all that was ever there, also after what is corrupt.
      const sequence = isNewest(at) ? newest : state.sequence;
      return state.savedAs({ checkpointId: state.checkpointId, sequence, bytes: entry.length });
    }
    return undefined;
  }

  /** The records that make up a State; `undefined` when one is not what was written, which is noted. */
  async #chain(
    { runId }: RunView,
    known: Known,
    chain: readonly Entry[],
    corrupt: CorruptLine[],
  ): Promise<Read[] | "changed" | undefined> {
    const { files } = this.#settings;
    const texts = await files.read(runId, chain);
    if (texts === undefined) return "changed";
    const reads: Read[] = [];
    for (const [index, entry] of chain.entries()) {
      try {
        const text = texts[index] ?? Buffer.alloc(0);
        reads.push(readRecord(text, files.path(runId, entry), runId));
      } catch (error) {
        if (!(error instanceof CheckpointCorruptionError)) throw error;
        known.spoil(entry);
        const { expected, actual } = error;
        corrupt.push({ ...entry, expected, actual });
        return undefined;
      }
    }
    return areLinked(reads) ? reads : undefined;
  }
}
