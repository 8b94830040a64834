import { join } from "node:path";
import { DocumentCodec, type DocumentHeader } from "../../codecs/document.js";
import { codeOf, type FileSystem } from "./file-system.js";
import { checkpointName } from "./layout.js";
import { refused } from "./listing.js";

/** Enough for a header whose names are not extraordinarily long; then for any. */
const HEAD_SIZES = [4 * 1024, 256 * 1024];

/** No document is larger: V8 has no string that would hold it. */
const MAX_SIZE = 2 ** 30;

/** A checkpoint's header and the size of its file. */
export interface Headed {
  readonly header: DocumentHeader;
  readonly bytes: number;
}

/** The headers of these checkpoints of a run; `undefined` for a file that is gone, or has none of this run. */
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
    for (const [index, head] of heads.entries()) {
      const header = head && DocumentCodec.header(head.bytes);
      const fits = header !== undefined && header.runId === (runId ?? header.runId);
      if (head === undefined || !fits || header.sequence !== missing[index]) continue;
      found.set(header.sequence, { header, bytes: head.size });
    }
    missing = missing.filter((sequence, index) => {
      return !found.has(sequence) && (heads[index]?.size ?? 0) > size;
    });
    if (missing.length === 0) break;
  }
  return sequences.map((sequence) => found.get(sequence));
}

/**
 * The bytes of a checkpoint's file; `undefined` when it is gone.
 *
 * @throws CheckpointCorruptionError when it is not a file, or too large to be one of ours.
 * @throws the file system's own error, which names the file, when it can't be read.
 */
export async function readRecord(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  let file: number | undefined;
  try {
    file = await fs.open(path);
    const { kind, size } = await fs.stat(file);
    if (kind !== "file") throw refused(path, "a file", kind);
    if (size > MAX_SIZE) throw new RangeError(`it has ${size} bytes, too many for a checkpoint`);
    return await fs.read(file, size);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    if (codeOf(error) === "ELOOP") throw refused(path, "a file", "other");
    throw named(error, path);
  } finally {
    if (file !== undefined) await fs.close(file);
  }
}

/** The same error, with the file's name in its message where it has none. */
function named(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error.message.includes(path)) return error;
  const { message } = error;
  return Object.assign(new Error(`${path} can't be read: ${message}`, { cause: error }), {
    code: codeOf(error),
  });
}
