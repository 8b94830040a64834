import { dirname, join } from "node:path";
import { type FileSystem, unless } from "./file-system.js";
import { checkpointName, QUARANTINE } from "./layout.js";
import { list, refused } from "./listing.js";
import { quarantine } from "./quarantine.js";
import { headersOf } from "./record.js";
import { syncFolder } from "./sync.js";

/** Removes a checkpoint's file if it is one of this run's; anything else is moved to quarantine. */
export async function discard(
  fs: FileSystem,
  folder: string,
  runId: string,
  sequence: number,
  durable: boolean,
): Promise<void> {
  const path = join(folder, checkpointName(sequence));
  const found = await unless(["ENOENT"], fs.lstat(path), undefined);
  if (found === undefined) return;
  if (found.kind === "folder") throw refused(path, "a file", found.kind);
  const isForeign = async (): Promise<boolean> =>
    (await headersOf(fs, folder, runId, [sequence]))[0] === undefined;
  if (await isForeign()) {
    await quarantine(fs, folder, sequence, durable, isForeign);
  } else {
    await unless(["ENOENT"], fs.unlink(path), undefined);
  }
}

/**
 * Removes a run: first what is being written, then its checkpoints, oldest first, the newest for itself.
 * So a crash leaves the run as it was, or with less history, or gone, never set back. What others have
 * put into the folder, and the quarantine, stay.
 *
 * @param expected - the sequence that the run must be at, or it is left alone; any if not given.
 * @returns whether it was removed.
 */
export async function removeRun(
  fs: FileSystem,
  folder: string,
  runId: string,
  durable: boolean,
  expected?: number,
): Promise<boolean> {
  // Somebody else may remove it too, and be at the end of it.
  const sync = (): Promise<void> => unless(["ENOENT"], syncFolder(fs, folder), undefined);
  for (let removed = false; ; removed = true) {
    const listing = await list(fs, folder);
    const { checkpoints = [], temporaries = [] } = listing ?? {};
    const newest = checkpoints.at(-1);
    if (expected !== undefined && newest !== undefined && newest !== expected) return removed;
    for (const name of temporaries) {
      await unless(["ENOENT"], fs.unlink(join(folder, name)), undefined);
    }
    if (newest === undefined && temporaries.length === 0) break;
    const older = checkpoints.slice(0, -1);
    for (const sequence of older) await discard(fs, folder, runId, sequence, durable);
    if (older.length > 0 && durable) await sync();
    if (newest !== undefined) await discard(fs, folder, runId, newest, durable);
    if (durable) await sync();
  }
  await removeIfEmpty(fs, folder, durable);
  return true;
}

async function removeIfEmpty(fs: FileSystem, folder: string, durable: boolean): Promise<void> {
  const stays = ["ENOENT", "ENOTEMPTY", "EEXIST", "ENOTDIR"];
  await unless(stays, fs.rmdir(join(folder, QUARANTINE)), undefined);
  const gone = await unless(
    stays,
    fs.rmdir(folder).then(() => true),
    false,
  );
  if (gone && durable) await syncFolder(fs, dirname(folder));
}

/** How long a temporary file is left alone when its writer can't be asked, in milliseconds. */
const ABANDONED = 60 * 60 * 1000;

/**
 * Removes temporary files whose writer is dead, or that are an hour old. Should one be mistaken, its
 * writer finds its file gone and writes it again.
 */
export async function sweep(
  fs: FileSystem,
  folder: string,
  temporaries: readonly { readonly name: string; readonly owner: string }[],
  time: number,
): Promise<void> {
  for (const { name, owner } of temporaries) {
    if (owner === fs.owner) continue;
    const path = join(folder, name);
    const found = await unless(["ENOENT"], fs.lstat(path), undefined);
    if (found === undefined) continue;
    if (fs.isAlive(owner) && time - found.modified < ABANDONED) continue;
    await unless(["ENOENT"], fs.unlink(path), undefined);
  }
}
