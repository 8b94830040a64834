import { join } from "node:path";
import { DocumentCodec, type DocumentHeader } from "../../codecs/document.js";
import type { FileSystem } from "./file-system.js";
import { checkpointName } from "./layout.js";
import { withFile } from "./open-file.js";

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
 * @throws CheckpointCorruptionError when it is not a file.
 * @throws the file system's own error, which names the file, when it can't be read.
 */
export function readRecord(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  return withFile(fs, path, (file, size) => {
    if (size > MAX_SIZE) throw new RangeError(`it has ${size} bytes, too many for a checkpoint`);
    return fs.read(file, size);
  });
}
