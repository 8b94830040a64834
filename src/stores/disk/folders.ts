import { dirname, join } from "node:path";
import { CheckpointCorruptionError, systemCode } from "../../errors.js";
import { type FileKind, type FileSystem, ignoring, together } from "./file-system.js";
import { goneSequence, ownerOf, QUARANTINE, quarantinedSequence, sequenceOf } from "./layout.js";

/** What is in a run's folder. */
export interface Listing {
  /** The sequences that have a file, oldest first. */
  readonly checkpoints: readonly number[];
  /** The highest sequence that was ever used, as far as can be seen; 0 for none. */
  readonly highest: number;
  /** The names of the files in quarantine. */
  readonly quarantined: readonly string[];
  /** The names of the files that are being written, or were left behind. */
  readonly temporaries: readonly string[];
  /** The sequences that are said to have been used by a file of their own. */
  readonly gone: readonly number[];
}

/**
 * What is in a run's folder; `undefined` if it is not there.
 *
 * @throws CheckpointCorruptionError if there is something else in its place.
 */
export async function list(fs: FileSystem, folder: string): Promise<Listing | undefined> {
  const names = await namesIn(fs, folder);
  if (names === undefined) return undefined;
  const quarantined = names.includes(QUARANTINE)
    ? ((await namesIn(fs, join(folder, QUARANTINE))) ?? [])
    : [];
  const checkpoints = sequencesIn(names);
  const aside = quarantined.map((name) => quarantinedSequence(name) ?? 0);
  const gone = names.flatMap((name) => goneSequence(name) ?? []);
  return {
    checkpoints,
    highest: Math.max(checkpoints.at(-1) ?? 0, ...aside, ...gone),
    quarantined,
    temporaries: names.filter((name) => ownerOf(name) !== undefined),
    gone,
  };
}

/** The sequences that have a file among these names, oldest first. */
export function sequencesIn(names: readonly string[]): number[] {
  return names.flatMap((name) => sequenceOf(name) ?? []).sort((a, b) => a - b);
}

/** The names in a folder; `undefined` when it is not there. A link to a folder is not followed. */
export async function namesIn(fs: FileSystem, folder: string): Promise<string[] | undefined> {
  const [found, names] = await together([
    ignoring(fs.lstat(folder)),
    ignoring(fs.readdir(folder), ["ENOENT", "ENOTDIR"]),
  ]);
  if (found === undefined) return undefined;
  if (found.kind !== "folder") throw refused(folder, "a folder", found.kind);
  return names;
}

/** The names in the root, `undefined` when it is not there. It is where its user says: also behind a link. */
export async function namesInRoot(fs: FileSystem, root: string): Promise<string[] | undefined> {
  try {
    return await fs.readdir(root);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw systemCode(error) === "ENOTDIR" ? refused(root, "a folder", "file") : error;
  }
}

/** The error for something else in the place of a file or a folder. Nothing was done to it. */
export function refused(
  path: string,
  expected: "a file" | "a folder",
  kind: FileKind,
): CheckpointCorruptionError {
  const actual = kind === "other" ? "a symbolic link or a device" : `a ${kind}`;
  return new CheckpointCorruptionError(
    `${path} must be ${expected}; found ${actual}, which was left as it is: move it away`,
    { expected, actual },
  );
}

/** Makes the names in a folder outlive a power cut. */
export async function syncFolder(fs: FileSystem, folder: string): Promise<void> {
  const file = await fs.openFolder(folder);
  if (file === undefined) return;
  try {
    await syncNames(fs, file);
  } finally {
    await fs.close(file);
  }
}

/** The same, of a folder that is open. */
export async function syncNames(fs: FileSystem, folder: number): Promise<void> {
  // Some network file systems know no such call for a folder; they write names at once.
  await ignoring(fs.sync(folder), ["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);
}

/** The folder of all runs. It is made when it is first needed. */
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
   * Sees to it that a folder in the root is there, also if the one who made it died before it was there
   * for good.
   *
   * @param durable - whether it has to outlive a power cut.
   */
  async makeFolder(folder: string, durable = this.#durable): Promise<void> {
    await this.#make();
    try {
      await ignoring(this.#fs.mkdir(folder), ["EEXIST"]);
    } catch (error) {
      if (systemCode(error) !== "ENOENT") throw error;
      // The root was removed since.
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
    const created = await this.#missing(this.path);
    for (const folder of created) {
      await ignoring(fs.mkdir(folder), ["EEXIST"]);
      if (this.#durable) await syncFolder(fs, dirname(folder));
    }
    // Whoever may not read what is around the root did not make it.
    if (this.#durable && created.length === 0) {
      await ignoring(syncFolder(fs, dirname(this.path)), ["EACCES", "EPERM"]);
    }
  }

  /** The folders on the way to this one that are not there yet, from the top down. */
  async #missing(folder: string): Promise<string[]> {
    const found = await ignoring(this.#fs.lstat(folder));
    if (found !== undefined || dirname(folder) === folder) return [];
    return [...(await this.#missing(dirname(folder))), folder];
  }
}
