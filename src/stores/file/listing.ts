import { join } from "node:path";
import { CheckpointCorruptionError } from "../../errors.js";
import { codeOf, type FileKind, type FileSystem, together, unless } from "./file-system.js";
import { ownerOf, QUARANTINE, quarantinedSequence, sequenceOf } from "./layout.js";

/** What is in a run's folder. */
export interface Listing {
  /** The sequences that have a file, oldest first. */
  readonly checkpoints: readonly number[];
  /** The highest sequence that was ever taken, as far as can be seen; 0 when none was. */
  readonly newest: number;
  /** The names of the files in quarantine. */
  readonly quarantined: readonly string[];
  /** The names of the files that are being written, or were left behind. */
  readonly temporaries: readonly string[];
}

/**
 * What is in a run's folder; `undefined` when it is not there.
 *
 * @throws CheckpointCorruptionError when there is something else in its place.
 */
export async function list(fs: FileSystem, folder: string): Promise<Listing | undefined> {
  const names = await namesIn(fs, folder);
  if (names === undefined) return undefined;
  const quarantined = names.includes(QUARANTINE)
    ? ((await namesIn(fs, join(folder, QUARANTINE))) ?? [])
    : [];
  const checkpoints = sequencesIn(names);
  const aside = quarantined.map((name) => quarantinedSequence(name) ?? 0);
  return {
    checkpoints,
    newest: Math.max(checkpoints.at(-1) ?? 0, ...aside),
    quarantined,
    temporaries: names.filter((name) => ownerOf(name) !== undefined),
  };
}

/** The sequences that have a file among these names, oldest first. */
export function sequencesIn(names: readonly string[]): number[] {
  return names.flatMap((name) => sequenceOf(name) ?? []).sort((a, b) => a - b);
}

/** The names in a folder; `undefined` when it is not there. A link to a folder is not followed. */
export async function namesIn(fs: FileSystem, folder: string): Promise<string[] | undefined> {
  const [found, names] = await together([
    unless(["ENOENT"], fs.lstat(folder), undefined),
    unless(["ENOENT", "ENOTDIR"], fs.readdir(folder), undefined),
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
    if (codeOf(error) === "ENOENT") return undefined;
    throw codeOf(error) === "ENOTDIR" ? refused(root, "a folder", "file") : error;
  }
}

/** The error for what is not what it has to be. Nothing was done to it. */
export function refused(
  path: string,
  expected: "a file" | "a folder",
  kind: FileKind,
): CheckpointCorruptionError {
  const actual = kind === "other" ? "a symbolic link or a device" : `a ${kind}`;
  return new CheckpointCorruptionError(
    `${path} wants to be ${expected} and is ${actual}: it was left as it is, move it away`,
    { expected, actual },
  );
}
