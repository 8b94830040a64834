import {
  fstatSync,
  linkSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import type { AppendFileOptions } from "../append-file.js";
import { overwrite, tornSize } from "../torn.js";

/** The byte that ends a line. */
export const NEWLINE = 10;
const SPACE = 32;
const CHUNK = 64 * 1024;
/** How many bytes at the end of an existing file to check when it is opened. */
const REOPENED = 256 * 1024;
/** How many bytes to repair at most, at the end: readers can skip torn lines themselves. */
const MENDED = 4 * 1024 * 1024;
const TORN = '{"event":"log.torn"}';

/**
 * Blanks out an unterminated last line, whose writer was killed. The file is not truncated, since another
 * process may be appending to it; the torn part becomes a complete line that says so.
 */
export function repairLines(path: string, file: number): void {
  const size = tornSize(file, (end) => end === 0 || byteAt(file, end - 1) === NEWLINE);
  if (size !== undefined) blank(path, endOfLines(file, size), size);
  const end = fstatSync(file).size;
  mendLines(path, file, Math.max(0, end - REOPENED), end);
}

/** Blanks out unterminated lines in the middle, to which another writer has appended since. */
export function mendLines(path: string, file: number, from: number, to: number): void {
  const start = endOfLines(file, Math.max(from, to - MENDED));
  const bytes = Buffer.alloc(to - start);
  const count = readSync(file, bytes, 0, bytes.length, start);
  for (let at = 0, end = 0; at < count; at = end + 1) {
    end = bytes.subarray(0, count).indexOf(NEWLINE, at);
    if (end < 0) return;
    const line = bytes.toString("utf8", at, end);
    const next = bytes.subarray(at, end).lastIndexOf(START);
    if (next > 0 && !isJson(line)) blank(path, start + at, start + at + next);
  }
}

/** How every line starts. Inside a complete line it can occur only in the fields of a custom event. */
export const START = '{"ts":';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function blank(path: string, start: number, end: number): void {
  const filler = Buffer.alloc(end - start, SPACE);
  filler.write(filler.length > TORN.length ? TORN : filler.length > 2 ? "{}" : "");
  filler[filler.length - 1] = NEWLINE;
  overwrite(path, filler, start);
}

function byteAt(file: number, position: number): number | undefined {
  const byte = Buffer.alloc(1);
  return readSync(file, byte, 0, 1, position) === 1 ? byte[0] : undefined;
}

/** Where the last terminated line ends. */
export function endOfLines(file: number, size: number): number {
  const chunk = Buffer.alloc(CHUNK);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK);
    const count = readSync(file, chunk, 0, end - start, start);
    const at = chunk.subarray(0, count).lastIndexOf(NEWLINE);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** Renames a file that is large enough to the next free number, `events.0001.jsonl`, and removes the oldest ones. */
export function rotation(
  maxBytes: number,
  maxFiles: number,
): NonNullable<AppendFileOptions["isFull"]> {
  return (path, size, more, inode) => {
    if (size === 0 || size + more <= maxBytes) return false;
    // Another process may have renamed it already; then the path is no longer the file we hold open.
    if (statSync(path, { throwIfNoEntry: false })?.ino !== inode) return true;
    move(path, partPath(path, (rotated(path).at(-1)?.number ?? 0) + 1));
    const parts = rotated(path);
    for (const part of parts.slice(0, Math.max(0, parts.length - maxFiles + 1))) {
      unlinkSync(part.path);
    }
    return true;
  };
}

/** By a link, since that fails if the name is taken; a rename would overwrite. */
function move(from: string, to: string): void {
  try {
    linkSync(from, to);
    unlinkSync(from);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    // EEXIST, ENOENT: another process has just renamed it. Anything else: the file system may have no links.
    if (code !== "EEXIST" && code !== "ENOENT") renameSync(from, to);
  }
}

/** All files of a log, oldest first. */
export function logFiles(path: string): string[] {
  return [...rotated(path).map((part) => part.path), path];
}

/** A renamed file. */
interface Part {
  readonly path: string;
  readonly number: number;
}

/**
 * The renamed files, oldest first, up to the one that has this inode by now; and the number
 * of that one, which it may yet have to get.
 */
export function partsBefore(
  path: string,
  inode: number | undefined,
): { readonly parts: readonly Part[]; readonly number: number } {
  const parts = rotated(path);
  const isIt = (part: Part): boolean =>
    inode !== undefined && statSync(part.path, { throwIfNoEntry: false })?.ino === inode;
  const at = parts.findIndex(isIt);
  const number = parts[at]?.number ?? (parts.at(-1)?.number ?? 0) + 1;
  return { parts: at < 0 ? parts : parts.slice(0, at), number };
}

function rotated(path: string): Part[] {
  const folder = dirname(path);
  const ending = extname(path);
  const stem = basename(path, ending);
  const numberOf = (name: string): number =>
    name.startsWith(`${stem}.`) && name.endsWith(ending)
      ? Number(/^\.(\d{4,9})$/.exec(name.slice(stem.length, name.length - ending.length))?.[1] ?? 0)
      : 0;
  return list(folder)
    .map((name) => ({ path: join(folder, name), number: numberOf(name) }))
    .filter(({ number }) => number > 0)
    .sort((a, b) => a.number - b.number);
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function partPath(path: string, number: number): string {
  const ending = extname(path);
  const digits = String(number).padStart(4, "0");
  return join(dirname(path), `${basename(path, ending)}.${digits}${ending}`);
}
