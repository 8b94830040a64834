import { join } from "node:path";
import { type RunEntry, runEntryOf } from "../../checkpoint/records/backend.js";
import type { RecordHeader } from "../../checkpoint/records/header.js";
import { mapLimit } from "../../concurrency.js";
import { type FileSystem, ignoring } from "./file-system.js";
import { headersOf } from "./files.js";
import { namesInRoot, sequencesIn } from "./folders.js";
import { folderName, runOf } from "./layout.js";

/** How many folders to look into at once. */
export const SCANNED_AT_ONCE = 16;

/** A run's folder that has checkpoints. */
export interface FoundRun {
  /** Its id; `undefined` if only its checkpoints know and none of them can be read. */
  readonly runId: string | undefined;
  readonly folder: string;
  /** The sequences that have a file, oldest first. */
  readonly checkpoints: readonly number[];
}

/** The runs under a root that have a checkpoint: all of them, or one. */
export async function findRuns(fs: FileSystem, root: string, runId?: string): Promise<FoundRun[]> {
  const names = (await namesInRoot(fs, root)) ?? [];
  const only = runId === undefined ? undefined : folderName(runId);
  const isOne = (name: string): boolean => name === (only ?? name) && runOf(name) !== undefined;
  const folders = names.filter(isOne).sort();
  const found = await mapLimit(folders, SCANNED_AT_ONCE, (name) => findRun(fs, root, name));
  return found.filter((run) => run !== undefined);
}

/** All runs under a root, or one, each as its newest header that can be read says; `undefined` if none can. */
export async function summarizeRuns(
  fs: FileSystem,
  root: string,
  runId?: string,
): Promise<(FoundRun & { readonly entry: RunEntry | undefined })[]> {
  return mapLimit(await findRuns(fs, root, runId), SCANNED_AT_ONCE, async (run) => {
    const header = await newestHeader(fs, run.folder, run.runId, run.checkpoints);
    return { ...run, entry: header && runEntryOf(header, run.checkpoints.at(-1) ?? 0) };
  });
}

async function findRun(fs: FileSystem, root: string, name: string): Promise<FoundRun | undefined> {
  const folder = join(root, name);
  const found = await ignoring(fs.lstat(folder));
  // A file, or a link that leads elsewhere, is nobody's run.
  if (found?.kind !== "folder") return undefined;
  // Only the names: what else is wrong with one run must not hide the others.
  const checkpoints = sequencesIn(await ignoring(fs.readdir(folder), ["ENOENT"], []));
  if (checkpoints.length === 0) return undefined;
  const run = runOf(name);
  if (typeof run === "object") return { runId: run.runId, folder, checkpoints };
  const header = await newestHeader(fs, folder, undefined, checkpoints);
  return { runId: header?.runId, folder, checkpoints };
}

async function newestHeader(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
  checkpoints: readonly number[],
): Promise<RecordHeader | undefined> {
  for (const sequence of checkpoints.toReversed()) {
    const [found] = await headersOf(fs, folder, runId, [sequence]);
    if (found?.header !== undefined) return found.header;
  }
  return undefined;
}
