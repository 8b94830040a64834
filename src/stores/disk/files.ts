import { join } from "node:path";
import { FRAME_BYTES, headerOf } from "../../checkpoint/records/document.js";
import type { RecordHeader } from "../../checkpoint/records/header.js";
import { systemCode } from "../../errors.js";
import type { FileSystem } from "./file-system.js";
import { refused } from "./folders.js";
import { checkpointName } from "./layout.js";

/** Enough for a header whose names are not extraordinarily long; then for any. */
const HEAD_SIZES = [4 * 1024, 256 * 1024];

/** No document is larger: V8 has no string that would hold it. */
const MAX_SIZE = 2 ** 30;

/** A record's header and size. */
export interface Headed {
  /** `undefined` if it can't be read, or is of another run or sequence. */
  readonly header: RecordHeader | undefined;
  /** The size of header and content in bytes. */
  readonly bytes: number;
}

/** Whether a header is of this checkpoint; of any run if it is not known. */
export function isOf(
  header: RecordHeader | undefined,
  runId: string | undefined,
  sequence: number,
): header is RecordHeader {
  return header?.sequence === sequence && (runId === undefined || header.runId === runId);
}

/**
 * The headers of these checkpoints of a run; `undefined` for what is gone or is no file.
 *
 * @param runId - the run they have to be of; any if it is not known.
 */
export async function headersOf(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
  sequences: readonly number[],
): Promise<(Headed | undefined)[]> {
  const found = new Map<number, Headed>();
  let missing = sequences;
  for (const size of HEAD_SIZES) {
    const paths = missing.map((sequence) => join(folder, checkpointName(sequence)));
    const heads = await fs.heads(paths, size);
    const long: number[] = [];
    for (const [index, sequence] of missing.entries()) {
      const head = heads[index];
      if (head === undefined) continue;
      const header = headerOf(head.bytes);
      const fits = isOf(header, runId, sequence);
      const bytes = Math.max(0, head.size - FRAME_BYTES);
      found.set(sequence, { header: fits ? header : undefined, bytes });
      if (header === undefined && head.size > size) long.push(sequence);
    }
    missing = long;
    if (missing.length === 0) break;
  }
  return sequences.map((sequence) => found.get(sequence));
}

/**
 * The bytes of a checkpoint's file; `undefined` if it is gone.
 *
 * @throws CheckpointCorruptionError if it is not a file, but a link or a folder.
 * @throws the file system's own error, which names the file, if it can't be read.
 */
export async function readFile(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  let file: number | undefined;
  try {
    file = await fs.open(path);
    const { kind, size } = await fs.stat(file);
    if (kind !== "file") throw refused(path, "a file", kind);
    if (size > MAX_SIZE) throw new RangeError(`it has ${size} bytes, too many for a checkpoint`);
    return await fs.read(file, size);
  } catch (error) {
    const code = file === undefined ? systemCode(error) : "";
    if (code === "ENOENT") return undefined;
    throw code === "ELOOP" ? refused(path, "a file", "other") : named(error, path);
  } finally {
    if (file !== undefined) await fs.close(file);
  }
}

/** The same error, with the file's name in its message where it has none. */
function named(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error.message.includes(path)) return error;
  const { message } = error;
  return Object.assign(new Error(`${path} can't be read: ${message}`, { cause: error }), {
    code: systemCode(error),
  });
}
