import { join } from "node:path";
import {
  type CheckpointAt,
  type HistoryEntry,
  isAt,
  notFound,
  type StoreContext,
} from "../../checkpoint/store.js";
import { CheckpointCorruptionError } from "../../errors.js";
import type { State } from "../../state/state.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { folderName, QUARANTINE } from "../file/layout.js";
import { type AnchorsFile, takeAnchor } from "./anchors.js";
import { recordsName } from "./layout.js";
import { partsOf } from "./line.js";
import { judge, type Log } from "./log.js";
import { setAside } from "./quarantine.js";
import {
  parseRecordHeader,
  previousOf,
  type Read,
  type RecordCodec,
  type RecordHeader,
  readRecord,
} from "./record.js";
import { readRecordsFiles, takeFiles } from "./records-file.js";
import {
  type CorruptLine,
  type Entry,
  entryAt,
  Known,
  type LogLine,
  type RunView,
  type Spot,
} from "./view.js";

/** How often to look again at files that come and go. */
const ATTEMPTS = 100;

/** What lies between two lines of one file is read with them when it is not more than this. */
const GAP = 64 * 1024;

/** What a reader needs of its store. */
export interface ReaderSettings {
  readonly fs: FileSystem;
  readonly root: string;
  readonly durable: boolean;
  readonly codec: RecordCodec;
  readonly log: Log;
  readonly anchors: AnchorsFile;
}

/** Reads runs out of the log and their files of records. */
export class JournalReader {
  readonly #settings: ReaderSettings;

  constructor(settings: ReaderSettings) {
    this.#settings = settings;
  }

  /** The folder of a run. */
  folder(runId: string): string {
    return join(this.#settings.root, folderName(runId));
  }

  /** Does something with what is known of a run, which stays in memory meanwhile. */
  async with<T>(runId: string, action: (view: RunView) => Promise<T>): Promise<T> {
    const { log } = this.#settings;
    const view = log.view(runId);
    view.pins++;
    try {
      return await action(view);
    } finally {
      view.pins--;
      const idle = view.pins === 0 && view.lines.length === 0 && view.unsure.size === 0;
      if (idle && log.views.get(view.key) === view) log.views.delete(view.key);
    }
  }

  /**
   * What the lines of a run come to, as far as they were read.
   *
   * @param inTurn - whether the log is this caller's at the moment.
   */
  async known(view: RunView, inTurn = false): Promise<Known> {
    const { fs, log, anchors } = this.#settings;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (view.known !== undefined) return view.known;
      const { version, lines } = view;
      const anchored = await anchors.read();
      const files = await readRecordsFiles(fs, this.folder(view.runId), view.runId);
      // A compaction that ended meanwhile may have put one in place of the other.
      if ((await anchors.read()).number !== anchored.number) continue;
      const known = new Known();
      if (files !== undefined) takeFiles(known, takeAnchor(known, view.key, files, anchored));
      const overtaken = log.number > 0 && known.movedUpTo >= log.number;
      // What is in the files has taken in all that was in the log up to there.
      const fresh = lines.filter((line) => line.log > known.movedUpTo);
      const changed =
        files === undefined || overtaken || !(await this.#takeLines(known, view.runId, fresh));
      if (changed) {
        await (inTurn ? log.refresh() : log.inTurn(() => log.refresh()));
      } else if (view.version === version) {
        view.known = known;
      }
    }
    throw new Error(`${this.folder(view.runId)} changed ${ATTEMPTS} times while it was read`);
  }

  /**
   * The newest State that is whole, or the newest of those asked for. What is corrupt is set aside.
   *
   * @throws CheckpointNotFoundError when there is none.
   * @throws CheckpointCorruptionError that lists them when there are only corrupt ones.
   */
  async load<D extends object>(
    view: RunView,
    at: CheckpointAt,
    emit: StoreContext["emit"],
  ): Promise<{ state: State<D>; head: string }> {
    const { log } = this.#settings;
    const faults: CheckpointCorruptionError[] = [];
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const known = await this.known(view);
      const found = await this.#newest<D>(view, known, at, faults, emit);
      if (found === "changed") {
        view.known = undefined;
        await log.inTurn(() => log.refresh());
        continue;
      }
      if (found !== undefined) return { state: found, head: known.head?.id ?? "" };
      throw this.#nothingLeft(view.runId, at, faults);
    }
    throw new Error(`${this.folder(view.runId)} changed ${ATTEMPTS} times while it was read`);
  }

  /** The headers of these records; `undefined` when a file is gone. A record that is no record has none. */
  async headers(
    view: RunView,
    entries: readonly Entry[],
  ): Promise<(RecordHeader | undefined)[] | undefined> {
    const texts = await this.lines(view.runId, entries);
    return texts?.map((text) => {
      const parts = partsOf(text);
      return parts && parseRecordHeader(parts.header);
    });
  }

  /** The checkpoints that are kept, newest first. Nothing is verified. */
  async history(view: RunView): Promise<HistoryEntry[]> {
    const { log } = this.#settings;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const kept = [...(await this.known(view)).kept].reverse();
      const headers = await this.headers(view, kept);
      if (headers !== undefined) {
        return headers.flatMap((header, index) => {
          if (header === undefined) return [];
          const { sequence, step, node, status, timestamp, checkpointId, parentId, reason } =
            header;
          const entry = { sequence, step, node, status, timestamp, checkpointId, parentId, reason };
          return [{ ...entry, bytes: kept[index]?.length ?? 0 }];
        });
      }
      view.known = undefined;
      await log.inTurn(() => log.refresh());
    }
    throw new Error(`${this.folder(view.runId)} changed ${ATTEMPTS} times while it was read`);
  }

  /** The lines at these places, which must be in order inside each file; `undefined` when a file is gone. */
  async lines(runId: string, spots: readonly Spot[]): Promise<Buffer[] | undefined> {
    const { fs } = this.#settings;
    const texts = new Map<Spot, Buffer>();
    const byPath = new Map<string, Spot[]>();
    for (const spot of spots) {
      const path = this.#path(runId, spot);
      byPath.set(path, [...(byPath.get(path) ?? []), spot]);
    }
    for (const [path, wanted] of byPath) {
      const file = await unless(["ENOENT"], fs.open(path), undefined);
      if (file === undefined) return undefined;
      try {
        for (const group of grouped(wanted)) {
          const [start, end] = [group[0]?.offset ?? 0, endOf(group.at(-1))];
          const bytes = Buffer.from(await fs.read(file, end - start, start));
          for (const spot of group) {
            const from = spot.offset - start;
            texts.set(spot, bytes.subarray(from, from + spot.length));
          }
        }
      } finally {
        await fs.close(file);
      }
    }
    return spots.map((spot) => texts.get(spot) ?? Buffer.alloc(0));
  }

  #path(runId: string, { inLog, file }: Spot): string {
    return inLog ? this.#settings.log.path(file) : join(this.folder(runId), recordsName(file));
  }

  /** Takes lines of the log in; `false` when one is gone. */
  async #takeLines(known: Known, runId: string, lines: readonly LogLine[]): Promise<boolean> {
    const { log } = this.#settings;
    const [first, last] = [lines[0], lines.at(-1)];
    if (first === undefined || last === undefined) return true;
    const spots = lines.map((line) => ({ ...entryAt(line), sequence: line.sequence }));
    // Where nobody disputed a sequence, looking at the ends is enough.
    const undisputed =
      log.damages.length === 0 &&
      lines.every(
        ({ kind, sequence }, index) => kind !== "delete" && sequence === known.sequence + 1 + index,
      );
    if (undisputed) {
      const ends = await this.lines(
        runId,
        [...new Set([spots[0], spots.at(-1)])].flatMap((one) => one ?? []),
      );
      if (ends === undefined) return false;
      if (takeEnds(known, runId, spots, ends)) return true;
    }
    const texts = await this.lines(runId, spots);
    if (texts === undefined) return false;
    let before: LogLine | undefined;
    for (const [index, line] of lines.entries()) {
      const between = log.damages.some(
        (damage) => isAfter(damage, before) && !isAfter(damage, line),
      );
      if (between) known.damaged = true;
      judge(known, runId, line, texts[index] ?? Buffer.alloc(0));
      before = line;
    }
    if (log.damages.some((damage) => isAfter(damage, before))) known.damaged = true;
    return true;
  }

  async #newest<D extends object>(
    view: RunView,
    known: Known,
    at: CheckpointAt,
    faults: CheckpointCorruptionError[],
    emit: StoreContext["emit"],
  ): Promise<State<D> | "changed" | undefined> {
    const isAny = at.step === undefined && at.checkpointId === undefined;
    await this.setDamagesAside(emit);
    for (const line of known.corrupt) faults.push(await this.setAside(view, line, emit));
    const kept = [...known.kept].reverse();
    const headers = isAny ? [] : await this.headers(view, kept);
    if (headers === undefined) return "changed";
    for (const [index, entry] of kept.entries()) {
      const header = headers[index];
      if (header !== undefined && !isAt(at, header)) continue;
      const chain = known.chainOf(entry);
      const texts = chain && (await this.lines(view.runId, chain));
      if (chain === undefined) continue;
      if (texts === undefined) return "changed";
      const reads: Read[] = [];
      for (const [number, text] of texts.entries()) {
        const one = chain[number] ?? entry;
        const read = attempt(() => readRecord(text, this.#path(view.runId, one), view.runId));
        if (!(read instanceof CheckpointCorruptionError)) {
          reads.push(read);
          continue;
        }
        known.spoil(one);
        const { expected, actual } = read;
        faults.push(await this.setAside(view, { ...one, expected, actual }, emit));
        break;
      }
      if (reads.length < chain.length || !areLinked(reads)) continue;
      const state = await this.#settings.codec.decode<D>(reads, this.#path(view.runId, entry));
      if (!isAt(at, state)) continue;
      // What comes next goes after all that was ever there, also after what is corrupt.
      const sequence = isAny ? known.sequence : state.sequence;
      return state.savedAs({ checkpointId: state.checkpointId, sequence, bytes: entry.length });
    }
    return undefined;
  }

  /** Copies what is no line of any run to quarantine, unless it looks like what a crash leaves behind. */
  async setDamagesAside(emit?: StoreContext["emit"]): Promise<void> {
    const { log } = this.#settings;
    for (const { log: file, offset, length, torn } of log.damages) {
      if (torn) continue;
      const spot = { file, inLog: true, offset, length };
      const [text] = (await this.lines("", [spot])) ?? [];
      if (text === undefined) continue;
      const line = {
        ...spot,
        sequence: 0,
        expected: "a line of a journal",
        actual: "something else",
      };
      await setAside(this.#settings, log.folder, line, text, emit);
    }
  }

  /** Copies a line that is not what was written to quarantine; tells of it the first time. */
  async setAside(
    view: RunView,
    line: CorruptLine,
    emit?: StoreContext["emit"],
  ): Promise<CheckpointCorruptionError> {
    const path = this.#path(view.runId, line);
    const { expected, actual } = line;
    const [text] = (await this.lines(view.runId, [line])) ?? [];
    if (text !== undefined)
      await setAside(this.#settings, this.folder(view.runId), line, text, emit);
    const message = `record ${line.sequence} in ${path} is corrupt: expected ${expected}, found ${actual}`;
    return new CheckpointCorruptionError(message, { expected, actual });
  }

  #nothingLeft(
    runId: string,
    at: CheckpointAt,
    faults: readonly CheckpointCorruptionError[],
  ): Error {
    const [first] = faults;
    if (first === undefined) return notFound(runId, at);
    const reasons = faults.map(({ message }) => message).join("; ");
    return new CheckpointCorruptionError(
      `run ${JSON.stringify(runId)} has no checkpoint left that is whole: ${reasons}. Copies are in ${join(this.folder(runId), QUARANTINE)}`,
      { expected: first.expected, actual: first.actual, cause: first },
    );
  }
}

/** Takes lines in of which the first and the last are what was written; `false` when they aren't. */
function takeEnds(
  known: Known,
  runId: string,
  spots: readonly Entry[],
  ends: readonly Buffer[],
): boolean {
  const headers = ends.map((text) => attempt(() => readRecord(text, "", runId)));
  const [first, last] = [headers[0], headers.at(-1)];
  if (first === undefined || first instanceof CheckpointCorruptionError) return false;
  if (last === undefined || last instanceof CheckpointCorruptionError) return false;
  const { checkpointId: id, sequence, keep = Number.POSITIVE_INFINITY } = last.header;
  const before = known.entries.length;
  const [spot] = spots;
  if (spot === undefined || !known.add(first.header, spot)) return false;
  known.entries.splice(before + 1, 0, ...spots.slice(1));
  const newest = known.entries.pop();
  if (newest !== undefined) known.entries.push({ ...newest, id });
  known.head = { id, sequence, keep };
  known.sequence = sequence;
  return true;
}

/** Whether each record is a patch to the one before. */
function areLinked(reads: readonly Read[]): boolean {
  return reads.every((read, index) => {
    const before = reads[index - 1];
    return before === undefined || previousOf(read.header) === before.header.checkpointId;
  });
}

/** What an action gives, or why it is corrupt. */
function attempt<T>(action: () => T): T | CheckpointCorruptionError {
  try {
    return action();
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return error;
    throw error;
  }
}

function isAfter(one: { log: number; offset: number }, other: LogLine | undefined): boolean {
  if (other === undefined) return true;
  return one.log > other.log || (one.log === other.log && one.offset > other.offset);
}

function endOf(spot: Spot | undefined): number {
  return spot === undefined ? 0 : spot.offset + spot.length;
}

/** Places that are near enough to each other to be read at once. */
function grouped(spots: readonly Spot[]): Spot[][] {
  const groups: Spot[][] = [];
  for (const spot of [...spots].sort((a, b) => a.offset - b.offset)) {
    const group = groups.at(-1);
    if (group !== undefined && spot.offset - endOf(group.at(-1)) <= GAP) group.push(spot);
    else groups.push([spot]);
  }
  return groups;
}
