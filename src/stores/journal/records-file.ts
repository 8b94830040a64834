import { join } from "node:path";
import { type FileSystem, unless } from "../file/file-system.js";
import { namesIn } from "../file/listing.js";
import { makeFolder } from "../file/make-folder.js";
import { reserve } from "../file/reserve.js";
import { syncFolder } from "../file/sync.js";
import { isTemporaryRecords, recordsName, recordsNumber, temporaryRecordsName } from "./layout.js";
import { faultOf, lengthOf, partsOf, runIdOf, scan, toBuffer, toLine } from "./line.js";
import { parseRecordHeader, previousOf, type RecordHeader, readRecord } from "./record.js";
import type { Entry, Known } from "./view.js";

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
  /** The header of the last one. */
  readonly newest: RecordHeader;
  /** The id of the record that comes before the first. */
  readonly after: string;
}

/** A record to put into such a file. */
export interface MovedRecord {
  readonly header: RecordHeader;
  readonly snapshot: boolean;
  readonly line: Buffer;
}

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
    temporaries: names.filter(isTemporaryRecords),
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
    if (file === "gone") return undefined;
    if (file !== undefined) files.push(file);
  }
  return files;
}

/** One file, out of its first line where that is whole; `undefined` when it has no record of this run. */
export async function readRecordsFile(
  fs: FileSystem,
  folder: string,
  number: number,
  runId: string | undefined,
): Promise<RecordsFile | "gone" | undefined> {
  const path = join(folder, recordsName(number));
  const file = await unless(["ENOENT"], fs.open(path), undefined);
  if (file === undefined) return "gone";
  try {
    const { size } = await fs.stat(file);
    const head = toBuffer(await fs.read(file, Math.min(HEAD, size)));
    const length = Math.min(lengthOf(head) ?? 0, size);
    const first = length <= head.length ? head : toBuffer(await fs.read(file, length));
    const found =
      fromIndex(first.subarray(0, length), number) ??
      fromLines(toBuffer(await fs.read(file, size)), number, runId);
    if (found === undefined || found.newest.runId !== (runId ?? found.newest.runId))
      return undefined;
    return { ...found, number, path, size };
  } finally {
    await fs.close(file);
  }
}

type Contents = Pick<RecordsFile, "entries" | "newest" | "after">;

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
    return { sequence, snapshot: snapshot === 1, ...where };
  });
  return { entries, newest, after: index.after ?? "" };
}

/** The same out of the lines themselves. */
function fromLines(bytes: Buffer, number: number, runId: string | undefined): Contents | undefined {
  const entries: Entry[] = [];
  let newest: RecordHeader | undefined;
  let after: string | undefined;
  scan(bytes, number, 0, (line) => {
    if (line.kind !== "snapshot" && line.kind !== "patch") return;
    const { offset, length, kind, sequence } = line;
    const where = { file: number, inLog: false, offset, length };
    try {
      const text = bytes.subarray(offset, offset + length);
      const { header } = readRecord(text, "", runId ?? runIdOf(line.run));
      after ??= previousOf(header);
      newest = header;
    } catch {
      // It is found again, and told, by whoever needs it.
    }
    entries.push({ sequence, snapshot: kind === "snapshot", ...where });
  });
  return newest && { entries, newest, after: after ?? "" };
}

/** Takes the files' records in, oldest first. A file that does not go on where those before it end replaces them. */
export function takeFiles(known: Known, files: readonly RecordsFile[]): Known {
  for (const { entries, newest, after, number } of files) {
    known.movedUpTo = Math.max(known.movedUpTo, number);
    if (after !== (known.head?.id ?? "")) known.clear();
    known.entries.push(...entries);
    const { checkpointId: id, sequence, keep = Number.POSITIVE_INFINITY } = newest;
    const last = known.entries.pop();
    if (last !== undefined) known.entries.push({ ...last, id });
    known.head = { id, sequence, keep };
    known.sequence = sequence;
  }
  return known;
}

/**
 * Writes such a file; it is there for good when the promise resolves.
 *
 * @param isDue - asked once the file is begun, when whoever removes records would find it, and see
 *   to it that it does not come to be.
 */
export async function writeRecordsFile(
  fs: FileSystem,
  folder: string,
  number: number,
  records: readonly MovedRecord[],
  durable: boolean,
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
  await makeFolder(fs, folder, durable);
  const temporary = join(folder, temporaryRecordsName(number, fs.owner));
  const file = await fs.create(temporary);
  try {
    if (!(await isDue())) return false;
    const lines = records.map(({ line }) => line);
    await fs.write(file, Buffer.concat([toLine("records", JSON.stringify(index)), ...lines]));
    if (durable) await fs.sync(file);
    // Never in place of another: somebody may know where in it a line is.
    const path = join(folder, recordsName(number));
    const how = await reserve(fs, temporary, path);
    if (how === "taken" || how === "gone") return false;
    if (how === "reserved") await fs.rename(temporary, path);
    if (durable) await syncFolder(fs, folder);
    return true;
  } finally {
    await fs.close(file).catch(() => {});
    await fs.unlink(temporary).catch(() => {});
  }
}
