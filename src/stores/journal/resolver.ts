import { CheckpointCorruptionError } from "../../errors.js";
import type { FileSystem } from "../file/file-system.js";
import { type AnchorsFile, takeAnchor } from "./anchors.js";
import { judge } from "./judge.js";
import type { Line } from "./line.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import { readRecord } from "./record.js";
import { readRecordsFiles, takeFiles } from "./records-file.js";
import { type Entry, entryAt, Known, type RunView } from "./view.js";

/** How often to look again at files that come and go. */
export const ATTEMPTS = 100;

/** What a resolver needs of its store. */
export interface ResolverSettings {
  readonly fs: FileSystem;
  readonly log: Log;
  readonly files: LineFiles;
  readonly anchors: AnchorsFile;
}

/** Finds out which records of a run count. */
export class Resolver {
  readonly #settings: ResolverSettings;

  constructor(settings: ResolverSettings) {
    this.#settings = settings;
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
    const { fs, log, files, anchors } = this.#settings;
    const exclusively = <T>(action: () => Promise<T>): Promise<T> =>
      inTurn ? action() : log.inTurn(action);
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (view.known !== undefined) return view.known;
      // Somebody may have closed it meanwhile: a log that was not read says nothing of its runs.
      if (log.number === 0) await exclusively(() => log.follow());
      const { closings } = log;
      const { version, lines } = view;
      const anchored = await anchors.read();
      const folder = files.folder(view.runId);
      const moved = await readRecordsFiles(fs, folder, view.runId);
      // A compaction that ended meanwhile may have put one in place of the other.
      if ((await anchors.read()).number !== anchored.number) continue;
      const known = new Known();
      if (moved !== undefined) takeFiles(known, takeAnchor(known, view.key, moved, anchored));
      const overtaken = log.number > 0 && known.movedUpTo >= log.number;
      // What is in the files has taken in all that was in the log up to there.
      const fresh = lines.filter((line) => line.log > known.movedUpTo);
      const verify = (): Promise<boolean> => exclusively(() => log.verify());
      const changed =
        moved === undefined ||
        overtaken ||
        !(await this.#takeLines(known, view.runId, fresh, verify));
      if (changed) {
        await exclusively(() => log.refresh());
      } else if (view.version === version && log.closings === closings) {
        view.known = known;
      }
    }
    throw new Error(`${files.folder(view.runId)} changed ${ATTEMPTS} times while it was read`);
  }

  /** Takes lines of the log in; `false` when one is gone, or there is more to know about the log now. */
  async #takeLines(
    known: Known,
    runId: string,
    lines: readonly Line[],
    verify: () => Promise<boolean>,
  ): Promise<boolean> {
    const { log, files } = this.#settings;
    const [first, last] = [lines[0], lines.at(-1)];
    if (first === undefined || last === undefined) return true;
    const spots = lines.map(entryAt);
    // Where nobody disputed a sequence, looking at the ends is enough.
    const undisputed =
      log.damages.all.length === 0 &&
      lines.every(
        ({ kind, sequence }, index) => kind !== "delete" && sequence === known.sequence + 1 + index,
      );
    if (undisputed) {
      const ends = await files.read(
        runId,
        [...new Set([spots[0], spots.at(-1)])].flatMap((one) => one ?? []),
      );
      if (ends === undefined) return false;
      if (takeEnds(known, runId, spots, ends)) return true;
    }
    const texts = await files.read(runId, spots);
    if (texts === undefined) return false;
    let before: Line | undefined;
    for (const [index, line] of lines.entries()) {
      if (log.damages.isBetween(before, line)) known.damaged = true;
      const problem = judge(known, runId, line, texts[index] ?? Buffer.alloc(0));
      if (problem === "corrupt") log.spoil(line);
      if (problem === "gap" && (await verify())) return false;
      before = line;
    }
    if (log.damages.isBetween(before, undefined)) known.damaged = true;
    return true;
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

/** What an action gives, or why it is corrupt. */
function attempt<T>(action: () => T): T | CheckpointCorruptionError {
  try {
    return action();
  } catch (error) {
    if (error instanceof CheckpointCorruptionError) return error;
    throw error;
  }
}
