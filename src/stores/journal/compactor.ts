import { join } from "node:path";
import { now } from "../../clock.js";
import { codeOf, type FileSystem, unless } from "../file/file-system.js";
import { QUARANTINE } from "../file/layout.js";
import { sweep } from "../file/removal.js";
import { inParallel } from "../file/runs.js";
import { syncFolder } from "../file/sync.js";
import type { Anchor, AnchorsFile } from "./anchors.js";
import { COMPACTING, recordsName, recordsOwnerOf } from "./layout.js";
import { faultOf, partsOf } from "./line.js";
import type { LineFiles } from "./line-files.js";
import type { Log } from "./log.js";
import type { Quarantine } from "./quarantine.js";
import { parseRecordHeader, previousOf } from "./record.js";
import {
  listRecords,
  type MovedRecord,
  type RecordsFile,
  readRecordsFiles,
  writeRecordsFile,
} from "./records-file.js";
import type { Resolver } from "./resolver.js";
import type { Entry } from "./view.js";

/*
 * What a run still needs is moved out of sealed files of the log into a file of the run's own; then
 * the files of the log go. At any moment a record is in the log, or in a run's file, or in both: the
 * one is there for good before the other goes, and having both is no different from having one.
 *
 * Several processes may do it at the same time: whoever writes the next file of anchors has done
 * it, and only then removes anything. A run's file of records that one of the others has written
 * says nothing that is wrong, and is gone with the next compaction. So that work is not done twice
 * for nothing, there is also a file that says who is at it.
 */

/** How long a compaction is believed in when its process can't be asked, in milliseconds. */
const ABANDONED = 10 * 60 * 1000;

/** What a compactor needs of its store. */
export interface CompactorSettings {
  readonly fs: FileSystem;
  readonly durable: boolean;
  readonly log: Log;
  readonly files: LineFiles;
  readonly resolver: Resolver;
  readonly quarantine: Quarantine;
  readonly anchors: AnchorsFile;
}

/** What is left to do for a run once all runs were moved. */
interface Move {
  /** The run's name in lines. */
  readonly key: string;
  /** Its newest record, when there is no file of records to tell. */
  readonly anchor?: Omit<Anchor, "at">;
  /** Files that nothing needs any more. */
  readonly obsolete: readonly string[];
  /** The folder of a run that has ended. */
  readonly removed?: string;
}

/** Moves what is needed out of the log. */
export class Compactor {
  readonly #settings: CompactorSettings;

  constructor(settings: CompactorSettings) {
    this.#settings = settings;
  }

  /** Empties the sealed files of the log up to this number and removes them. */
  async compact(upTo: number): Promise<void> {
    const { fs, log, quarantine, anchors } = this.#settings;
    const { closings } = log;
    const numbers = log.sealed.filter((number) => number <= upTo);
    const last = numbers.at(-1);
    if (last === undefined || !(await this.#begin())) return;
    try {
      const before = await anchors.read();
      if (before.upTo >= last) {
        // Somebody else has done it.
        await this.#removeLogs(numbers);
        return;
      }
      const views = [...log.views.values()].filter(({ lines }) =>
        lines.some((line) => line.log <= last),
      );
      const isDue = async (): Promise<boolean> => {
        // What was found out of a log that is being read is not all there is to find out.
        if (log.closings !== closings) return false;
        const oldest = fs.lstat(log.path(numbers[0] ?? 0));
        return (await unless(["ENOENT"], oldest, undefined)) !== undefined;
      };
      await quarantine.addDamages(() => true);
      await this.#sweep(log.folder);
      const moves = await inParallel(views, (view) => this.#move(view.runId, last, isDue));
      const done = moves.flatMap((move) => move ?? []);
      if (done.length < moves.length || log.closings !== closings) return;
      const runs = new Map(before.runs);
      for (const { key, anchor } of done) {
        runs.delete(key);
        if (anchor !== undefined) runs.set(key, { ...anchor, at: last });
      }
      if (!(await anchors.write(before, last, runs))) return;
      for (const { obsolete } of done) {
        for (const path of obsolete) await unless(["ENOENT"], fs.unlink(path), undefined);
      }
      for (const { removed } of done) if (removed) await this.remove(removed, last);
      await this.#removeLogs(numbers);
    } finally {
      await fs.unlink(join(log.folder, COMPACTING)).catch(() => {});
    }
  }

  /** Removes a run's files of records, oldest first; what is in quarantine stays. */
  async remove(folder: string, most = Number.POSITIVE_INFINITY): Promise<void> {
    const { fs, durable } = this.#settings;
    for (;;) {
      const { numbers, temporaries } = await listRecords(fs, folder);
      const old = numbers.filter((number) => number <= most).map(recordsName);
      const names = [...temporaries, ...old];
      if (names.length === 0) break;
      for (const name of names) await unless(["ENOENT"], fs.unlink(join(folder, name)), undefined);
      // Somebody else may remove it too, and be at the end of it.
      if (durable) await unless(["ENOENT"], syncFolder(fs, folder), undefined);
    }
    const stays = ["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"];
    await unless(stays, fs.rmdir(join(folder, QUARANTINE)), undefined);
    await unless(stays, fs.rmdir(folder), undefined);
  }

  /** Removes files of the log, oldest first, and what it takes no more to read the rest. */
  async #removeLogs(numbers: readonly number[]): Promise<void> {
    const { fs, log, anchors, durable } = this.#settings;
    for (const number of numbers) {
      await unless(["ENOENT"], fs.unlink(log.path(number)), undefined);
    }
    await anchors.sweep();
    if (durable) await syncFolder(fs, log.folder);
    await log.inTurn(async () => log.forget(numbers));
  }

  /** Removes what those who died at a compaction had begun to write. */
  async #sweep(folder: string): Promise<void> {
    const { fs } = this.#settings;
    const { temporaries } = await listRecords(fs, folder);
    const owned = temporaries.map((name) => ({ name, owner: recordsOwnerOf(name) ?? "" }));
    await sweep(fs, folder, owned, now());
  }

  /** Whether nobody else is at it. */
  async #begin(): Promise<boolean> {
    const { fs, log } = this.#settings;
    const path = join(log.folder, COMPACTING);
    for (let attempt = 0; attempt < 2; attempt++) {
      try {
        const file = await fs.create(path);
        await fs.write(file, Buffer.from(fs.owner)).finally(() => fs.close(file));
        return true;
      } catch (error) {
        if (codeOf(error) !== "EEXIST") throw error;
      }
      const [head] = await fs.heads([path], 100);
      const found = await unless(["ENOENT"], fs.lstat(path), undefined);
      const owner = Buffer.from(head?.bytes ?? []).toString();
      const recent = now() - (found?.modified ?? 0) < ABANDONED;
      if (found !== undefined && recent && fs.isAlive(owner)) return false;
      await unless(["ENOENT"], fs.unlink(path), undefined);
    }
    return false;
  }

  /** Moves what a run needs out of the log up to a file; `undefined` when it could not be done. */
  async #move(
    runId: string,
    upTo: number,
    isDue: () => Promise<boolean>,
  ): Promise<Move | undefined> {
    const { fs, files, resolver, quarantine } = this.#settings;
    const folder = files.folder(runId);
    return resolver.with(runId, async (view) => {
      const { key } = view;
      const { entries, needed, corrupt } = await resolver.known(view);
      for (const line of corrupt) await quarantine.add(runId, line);
      if (entries.length === 0) {
        return { key, obsolete: [], anchor: { id: "", sequence: 0 }, removed: folder };
      }
      await this.#sweep(folder);
      const old = await readRecordsFiles(fs, folder, runId);
      if (old === undefined) return undefined;
      const isMoved = ({ inLog, file }: Entry): boolean => inLog && file <= upTo;
      const moved = needed.filter(isMoved);
      const merged = moved.length === 0 ? [] : toMerge(old, moved, upTo);
      const numbers = new Set(merged.map(({ number }) => number));
      const used = needed.filter((one) => isMoved(one) || (!one.inLog && numbers.has(one.file)));
      if (used.length > 0) {
        const records = await this.#records(runId, used);
        if (records === undefined) return undefined;
        if (!(await writeRecordsFile(fs, folder, upTo, records, isDue))) return undefined;
      }
      const stays = new Set(needed.flatMap(({ inLog, file }) => (inLog ? [] : [file])));
      const obsolete = old
        .filter(({ number }) => number < upTo && (!stays.has(number) || numbers.has(number)))
        .map(({ path }) => path);
      if (used.length > 0 || stays.size > 0) return { key, obsolete };
      const first = entries.find(({ inLog, file }) => inLog && file > upTo);
      const [text] = (first && (await files.read(runId, [first]))) ?? [];
      const header = text && parseRecordHeader(partsOf(text)?.header ?? "");
      if (header === undefined) return undefined;
      const anchor = { id: previousOf(header), sequence: header.sequence - 1 };
      return { key, obsolete, anchor };
    });
  }

  /** The lines themselves, but for those that are not what was written: these are set aside. */
  async #records(runId: string, entries: readonly Entry[]): Promise<MovedRecord[] | undefined> {
    const { files, quarantine } = this.#settings;
    const lines = await files.read(runId, entries);
    if (lines === undefined) return undefined;
    const records: MovedRecord[] = [];
    for (const [index, entry] of entries.entries()) {
      const line = lines[index] ?? Buffer.alloc(0);
      const fault = faultOf(line);
      const header = fault ? undefined : parseRecordHeader(partsOf(line)?.header ?? "");
      if (header !== undefined) {
        records.push({ header, snapshot: entry.snapshot, line });
      } else {
        const { expected = "a record", actual = "something else" } = fault ?? {};
        await quarantine.add(runId, { ...entry, expected, actual });
      }
    }
    return records;
  }
}

/** The newest files that are small beside what comes to them: so there are few, and none is copied often. */
function toMerge(
  files: readonly RecordsFile[],
  moved: readonly Entry[],
  upTo: number,
): RecordsFile[] {
  let bytes = moved.reduce((sum, { length }) => sum + length, 0);
  const merged: RecordsFile[] = [];
  for (const file of [...files].reverse()) {
    if (file.number < upTo && file.size > 2 * bytes) break;
    merged.push(file);
    bytes += file.size;
  }
  return merged;
}
