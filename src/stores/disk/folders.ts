import { dirname } from "node:path";
import { CheckpointCorruptionError, systemCode } from "../../errors.js";
import { explained } from "./failure.js";
import { type FileKind, type FileSystem, ignoring, together } from "./file-system.js";

/** No document can be larger: it would not fit into a V8 string. */
const MAX_SIZE = 2 ** 30;

/** The names in a folder; `undefined` if it does not exist. A symbolic link is not followed. */
export async function namesIn(fs: FileSystem, folder: string): Promise<string[] | undefined> {
  const [found, names] = await together([
    ignoring(fs.lstat(folder)),
    ignoring(fs.readdir(folder), ["ENOENT", "ENOTDIR"]),
  ]);
  if (found === undefined) return undefined;
  if (found.kind !== "folder") throw refused(folder, "a folder", found.kind);
  return names;
}

/** The names in the root; `undefined` if it does not exist. The root itself may be a symbolic link. */
export async function namesInRoot(fs: FileSystem, root: string): Promise<string[] | undefined> {
  try {
    return await fs.readdir(root);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw systemCode(error) === "ENOTDIR" ? refused(root, "a folder", "file") : error;
  }
}

/** The error for something else in place of a file or folder. */
export function refused(
  path: string,
  expected: "a file" | "a folder",
  kind: FileKind,
): CheckpointCorruptionError {
  const actual = kind === "other" ? "a symbolic link or a device" : `a ${kind}`;
  return new CheckpointCorruptionError(
    `${path} must be ${expected}; found ${actual}, which was left untouched: move it away`,
    { expected, actual },
  );
}

/**
 * The bytes of a checkpoint's file; `undefined` if it is gone.
 *
 * @throws CheckpointCorruptionError if it is a link or a folder instead of a file.
 * @throws BackendError, which names the file, if it can't be read.
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
    throw code === "ELOOP" ? refused(path, "a file", "other") : explained(error, path);
  } finally {
    if (file !== undefined) await fs.close(file);
  }
}

/** Makes the names in a folder survive a power cut. */
export async function syncFolder(fs: FileSystem, folder: string): Promise<void> {
  const file = await fs.openFolder(folder);
  if (file === undefined) return;
  try {
    await syncNames(fs, file);
  } finally {
    await fs.close(file);
  }
}

/** The same for an open folder. */
export async function syncNames(fs: FileSystem, folder: number): Promise<void> {
  // Some network file systems can't sync a folder; they write names immediately.
  await ignoring(fs.sync(folder), ["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);
}

/** The folder of all runs, created on first use. */
export class Root {
  readonly path: string;
  readonly #fs: FileSystem;
  readonly #durable: boolean;
  #ready: Promise<void> | undefined;

  constructor(fs: FileSystem, path: string, durable: boolean) {
    this.#fs = fs;
    this.path = path;
    this.#durable = durable;
  }

  /**
   * Ensures that a folder in the root exists and is durable, even if the process that created it died before
   * syncing it.
   *
   * @param durable - whether it must survive a power cut.
   */
  async makeFolder(folder: string, durable = this.#durable): Promise<void> {
    await this.#make();
    try {
      await ignoring(this.#fs.mkdir(folder), ["EEXIST"]);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      // The root was removed in the meantime.
      this.#ready = undefined;
      await this.#make();
      await ignoring(this.#fs.mkdir(folder), ["EEXIST"]);
    }
    if (durable) await syncFolder(this.#fs, this.path);
  }

  async #make(): Promise<void> {
    this.#ready ??= this.#create();
    try {
      await this.#ready;
    } catch (error) {
      this.#ready = undefined;
      throw error;
    }
  }

  async #create(): Promise<void> {
    const fs = this.#fs;
    const missing = await this.#missing(this.path);
    const [first] = missing;
    const found = first === undefined ? this.path : dirname(first);
    // The process that created it may have died before syncing its parent. A process that may not read the
    // parent did not create it.
    if (this.#durable) await ignoring(syncFolder(fs, dirname(found)), ["EACCES", "EPERM"]);
    for (const folder of missing) {
      await ignoring(fs.mkdir(folder), ["EEXIST"]);
      if (this.#durable) await syncFolder(fs, dirname(folder));
    }
  }

  /** This folder and its parents, as far as they are missing, outermost first. */
  async #missing(folder: string): Promise<string[]> {
    const found = await ignoring(this.#fs.lstat(folder));
    if (found !== undefined || dirname(folder) === folder) return [];
    return [...(await this.#missing(dirname(folder))), folder];
  }
}
