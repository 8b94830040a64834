import { join } from "node:path";
import { CheckpointCorruptionError } from "../../errors.js";
import { type FileSystem, unless } from "../file/file-system.js";
import { namesIn } from "../file/listing.js";
import { makeFolder } from "../file/make-folder.js";
import { withFile } from "../file/open-file.js";
import { reserve } from "../file/reserve.js";
import { syncFolder } from "../file/sync.js";
import { recordsName, recordsNumber, recordsOwnerOf, temporaryRecordsName } from "./layout.js";
import { faultOf, lengthOf, partsOf, runIdOf, scan, toBuffer, toLine } from "./line.js";
import {
  corrupt as corruptError,
  parseRecordHeader,
  previousOf,
  type RecordHeader,
  readRecord,
} from "./record.js";
import type { CorruptLine, Entry, Known } from "./view.js";

/*
 * What was moved out of the log: a run's lines as they were, byte by byte, behind a line that says
 * where each begins. A file is written once and never changed. It begins with a snapshot, unless
 * what comes before is in an older file.
 */

/** A file of one run's records. */
export interface RecordsFile {
  /** The last file of the log whose records it takes in. */
  readonly number: number;
  readonly path: string;
  readonly size: number;
  readonly entries: readonly Entry[];
  /** The header of the last one that can be read; `undefined` when none can. */
  readonly newest: RecordHeader | undefined;
  /** The id of the record that comes before the first. */
  readonly after: string;
  /** What in it is not what was written. */
  readonly corrupt: readonly CorruptLine[];
}

/** A record to put into such a file. */
export interface MovedRecord {
  readonly header: RecordHeader;
  readonly snapshot: boolean;
  readonly line: Buffer;
}

/** What only the first line has in it: a quote inside of a string is escaped. */
const INDEX = '","records":{';

/** Mostly enough for the first line. */
const HEAD = 4 * 1024;

/** The files of a run's records, oldest first, and those that are being written. */
export async function listRecords(
  fs: FileSystem,
  folder: string,
): Promise<{ numbers: number[]; temporaries: string[] }> {
  const names = (await namesIn(fs, folder)) ?? [];
  return {
    numbers: names.flatMap((name) => recordsNumber(name) ?? []).sort((a, b) => a - b),
    temporaries: names.filter((name) => recordsOwnerOf(name) !== undefined),
  };
}

/** What is in the files of a run's records; `undefined` when one went away meanwhile. */
export async function readRecordsFiles(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
): Promise<RecordsFile[] | undefined> {
  const { numbers } = await listRecords(fs, folder);
  const files: RecordsFile[] = [];
  for (const number of numbers) {
    const file = await readRecordsFile(fs, folder, number, runId);
    if (file === undefined) return undefined;
    files.push(file);
  }
  return files;
}

/** One file, out of its first line where that is whole; `undefined` when it is gone. */
export async function readRecordsFile(
  fs: FileSystem,
  folder: string,
  number: number,
  runId: string | undefined,
): Promise<RecordsFile | undefined> {
  const path = join(folder, recordsName(number));
  return withFile(fs, path, async (file, size) => {
    const head = toBuffer(await fs.read(file, Math.min(HEAD, size)));
    const length = Math.min(lengthOf(head) ?? 0, size);
    const first = length <= head.length ? head : toBuffer(await fs.read(file, length));
    const found =
      fromIndex(first.subarray(0, length), number) ??
      fromLines(toBuffer(await fs.read(file, size)), number, runId);
    const { newest } = found;
    const problem =
      newest === undefined
        ? { expected: "records of a run", actual: size === 0 ? "an empty file" : "something else" }
        : newest.runId !== (runId ?? newest.runId)
          ? { expected: `run ${runId}`, actual: `run ${newest.runId}` }
          : undefined;
    if (problem === undefined) return { ...found, number, path, size };
    const whole = { file: number, inLog: false, offset: 0, length: size, sequence: 0, ...problem };
    return { entries: [], newest: undefined, after: "", corrupt: [whole], number, path, size };
  });
}

type Contents = Pick<RecordsFile, "entries" | "newest" | "after" | "corrupt">;

function fromIndex(line: Buffer, number: number): Contents | undefined {
  if (line.length === 0 || faultOf(line) !== undefined) return undefined;
  const index = JSON.parse(partsOf(line)?.header ?? "{}") as {
    after?: string;
    newest?: unknown;
    lines?: [number, number, number][];
  };
  const newest = parseRecordHeader(JSON.stringify(index.newest));
  if (newest === undefined || index.lines === undefined) return undefined;
  let offset = line.length;
  const entries = index.lines.map(([sequence, length, snapshot]): Entry => {
    offset += length;
    const where = { file: number, inLog: false, offset: offset - length, length };
    return { ...where, sequence, snapshot: snapshot === 1, broken: false };
  });
  return { entries, newest, after: index.after ?? "", corrupt: [] };
}

/** The same out of the lines themselves. */
function fromLines(bytes: Buffer, number: number, runId: string | undefined): Contents {
  const entries: Entry[] = [];
  const corrupt: CorruptLine[] = [];
  let newest: RecordHeader | undefined;
  let after: string | undefined;
  let broken = false;
  scan(bytes, number, 0, (line) => {
    const { offset, length, kind } = line;
    const where = { file: number, inLog: false, offset, length };
    const text = bytes.subarray(offset, offset + length);
    const isRecord = kind === "snapshot" || kind === "patch";
    // The index, whole or not: nothing is lost with it.
    if (!isRecord && (offset === 0 || text.includes(INDEX))) return;
    const sequence = isRecord ? line.sequence : 0;
    try {
      if (!isRecord) throw corruptError("", "a record", "something else");
      const { header } = readRecord(text, "", runId ?? runIdOf(line.run));
      const snapshot = kind === "snapshot";
      entries.push({ ...where, sequence, snapshot, broken: broken && !snapshot });
      after ??= previousOf(header);
      newest = header;
      broken = false;
    } catch (error) {
      if (!(error instanceof CheckpointCorruptionError)) throw error;
      const { expected, actual } = error;
      corrupt.push({ ...where, sequence, expected, actual });
      broken = true;
    }
  });
  return { entries, newest, after: after ?? "", corrupt };
}

/**
 * Takes the files' records in, oldest first. A file that does not go on where those before it end
 * replaces them, unless something before it can't be read.
 */
export function takeFiles(known: Known, files: readonly RecordsFile[]): Known {
  const unsure = known.damaged;
  let missing = unsure;
  for (const { entries, newest, after, number, corrupt } of files) {
    if (newest !== undefined) {
      known.movedUpTo = Math.max(known.movedUpTo, number);
      const follows = after === (known.head?.id ?? "");
      if (!follows && !missing) known.clear();
      const [first, ...rest] = entries;
      const broken = !follows && missing && first?.snapshot === false;
      if (first !== undefined) known.entries.push({ ...first, ...(broken && { broken }) }, ...rest);
      const { checkpointId: id, sequence, keep = Number.POSITIVE_INFINITY } = newest;
      const last = known.entries.pop();
      if (last !== undefined) known.entries.push({ ...last, id });
      known.head = { id, sequence, keep };
      known.sequence = sequence;
    }
    for (const line of corrupt) known.addCorrupt(line);
    missing = unsure || corrupt.length > 0;
  }
  known.damaged = missing;
  return known;
}

/**
 * Writes such a file; it is there for good when the promise resolves, whatever the store is told of its
 * saves: what the log had for long is to outlive its end.
 *
 * @param isDue - asked once the file is begun, when whoever removes records would find it, and see
 *   to it that it does not come to be.
 */
export async function writeRecordsFile(
  fs: FileSystem,
  folder: string,
  number: number,
  records: readonly MovedRecord[],
  isDue: () => Promise<boolean>,
): Promise<boolean> {
  const [first, last] = [records[0], records.at(-1)];
  if (first === undefined || last === undefined) return true;
  const { runId, sequence } = last.header;
  const index = {
    runId,
    sequence,
    after: previousOf(first.header),
    newest: last.header,
    lines: records.map(({ header, line, snapshot }) => [
      header.sequence,
      line.length,
      snapshot ? 1 : 0,
    ]),
  };
  await makeFolder(fs, folder, true);
  const temporary = join(folder, temporaryRecordsName(number, fs.owner));
  // Whoever removes the last of a run takes its folder away.
  const file = await unless(["ENOENT"], fs.create(temporary), undefined);
  if (file === undefined) return false;
  try {
    if (!(await isDue())) return false;
    const lines = records.map(({ line }) => line);
    await fs.write(file, Buffer.concat([toLine("records", JSON.stringify(index)), ...lines]));
    await fs.sync(file);
    // Never in place of another: somebody may know where in it a line is.
    const path = join(folder, recordsName(number));
    const how = await reserve(fs, temporary, path);
    if (how === "taken" || how === "gone") return false;
    if (how === "reserved") await fs.rename(temporary, path);
    return await unless(
      ["ENOENT"],
      syncFolder(fs, folder).then(() => true),
      false,
    );
  } finally {
    await fs.close(file).catch(() => {});
    await fs.unlink(temporary).catch(() => {});
  }
}
