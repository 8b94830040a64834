import { codeOf, type FileInfo, type FileSystem } from "./file-system.js";
import { refused } from "./listing.js";

/** A file that is open to be read, and what it was when it was opened. */
export interface OpenFile {
  readonly file: number;
  readonly info: FileInfo;
}

/**
 * Opens a file to read it; `undefined` when nothing has this name. Whoever gets it closes it.
 *
 * @throws CheckpointCorruptionError when it is no file, such as a link or a folder.
 */
export async function openFile(fs: FileSystem, path: string): Promise<OpenFile | undefined> {
  let file: number;
  try {
    file = await fs.open(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw codeOf(error) === "ELOOP" ? refused(path, "a file", "other") : named(error, path);
  }
  try {
    const info = await fs.stat(file);
    if (info.kind !== "file") throw refused(path, "a file", info.kind);
    return { file, info };
  } catch (error) {
    await fs.close(file).catch(() => {});
    throw named(error, path);
  }
}

/**
 * What `action` makes of an open file; `undefined` when nothing has this name.
 *
 * @throws CheckpointCorruptionError when it is no file.
 * @throws the file system's own error, which names the file, when it can't be read.
 */
export async function withFile<T>(
  fs: FileSystem,
  path: string,
  action: (file: number, size: number) => Promise<T>,
): Promise<T | undefined> {
  const opened = await openFile(fs, path);
  if (opened === undefined) return undefined;
  try {
    return await action(opened.file, opened.info.size);
  } catch (error) {
    throw named(error, path);
  } finally {
    await fs.close(opened.file);
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
