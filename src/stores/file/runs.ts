import { join } from "node:path";
import type { RunSummary } from "../../checkpoint/store.js";
import type { DocumentHeader } from "../../codecs/document.js";
import { type FileSystem, unless } from "./file-system.js";
import { runOf } from "./layout.js";
import { namesInRoot, sequencesIn } from "./listing.js";
import { headersOf } from "./record.js";

/** How many folders to look into at once. */
const AT_ONCE = 16;

/** A run's folder that has checkpoints. */
export interface FoundRun {
  /** Its id; `undefined` when only its checkpoints know and none of them can be read. */
  readonly runId: string | undefined;
  readonly folder: string;
  /** The sequences that have a file, oldest first. */
  readonly checkpoints: readonly number[];
}

/** The runs under a root that have a checkpoint. */
export async function findRuns(fs: FileSystem, root: string): Promise<FoundRun[]> {
  const names = (await namesInRoot(fs, root)) ?? [];
  const folders = names.filter((name) => runOf(name) !== undefined).sort();
  const found = await inParallel(folders, (name) => findRun(fs, join(root, name), name));
  return found.filter((run) => run !== undefined);
}

async function findRun(
  fs: FileSystem,
  folder: string,
  name: string,
): Promise<FoundRun | undefined> {
  const found = await unless(["ENOENT"], fs.lstat(folder), undefined);
  // A file, or a link that leads elsewhere, is nobody's run.
  if (found?.kind !== "folder") return undefined;
  // Only the names: what else is wrong with one run must not hide the others.
  const checkpoints = sequencesIn(await unless(["ENOENT"], fs.readdir(folder), []));
  if (checkpoints.length === 0) return undefined;
  const run = runOf(name);
  if (typeof run === "object") return { runId: run.runId, folder, checkpoints };
  const header = await newestHeader(fs, folder, undefined, checkpoints);
  return { runId: header?.runId, folder, checkpoints };
}

/** A run's summary out of its newest header that can be read, with the sequence it is at. */
export async function summarizeRun(
  fs: FileSystem,
  { runId, folder, checkpoints }: FoundRun,
): Promise<{ summary: RunSummary; sequence: number } | undefined> {
  const header = await newestHeader(fs, folder, runId, checkpoints);
  if (header === undefined) return undefined;
  const { graph, status, node, step, timestamp } = header;
  const summary = { runId: header.runId, graph, status, node, step, timestamp };
  return { summary, sequence: checkpoints.at(-1) ?? 0 };
}

async function newestHeader(
  fs: FileSystem,
  folder: string,
  runId: string | undefined,
  checkpoints: readonly number[],
): Promise<DocumentHeader | undefined> {
  for (const sequence of [...checkpoints].reverse()) {
    const [found] = await headersOf(fs, folder, runId, [sequence]);
    if (found !== undefined) return found.header;
  }
  return undefined;
}

/** What `action` makes of each item, a few at a time. */
export async function inParallel<T, U>(
  items: readonly T[],
  action: (item: T) => Promise<U>,
): Promise<U[]> {
  const results: U[] = [];
  const entries = items.entries();
  const work = async (): Promise<void> => {
    for (const [index, item] of entries) results[index] = await action(item);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return results;
}
