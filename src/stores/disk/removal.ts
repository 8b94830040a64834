import { dirname, join } from "node:path";
import { type FileSystem, ignoring } from "./file-system.js";
import { headersOf } from "./files.js";
import { list, refused, syncFolder } from "./folders.js";
import { checkpointName, goneName, ownerOf, QUARANTINE } from "./layout.js";
import { quarantine } from "./quarantine.js";

/** Removes a checkpoint's file if it is one of this run's; anything else is moved to quarantine. */
export async function discard(
  fs: FileSystem,
  folder: string,
  runId: string,
  sequence: number,
  durable: boolean,
): Promise<void> {
  const path = join(folder, checkpointName(sequence));
  const found = await ignoring(fs.lstat(path));
  if (found === undefined) return;
  if (found.kind === "folder") throw refused(path, "a file", found.kind);
  const isForeign = async (): Promise<boolean> => {
    const [headed] = await headersOf(fs, folder, runId, [sequence]);
    return headed?.header === undefined && (await fs.idOf(path)) === found.id;
  };
  if (await isForeign()) {
    await quarantine(fs, folder, sequence, durable, isForeign);
  } else {
    await ignoring(fs.unlink(path));
  }
}

/**
 * Removes a run: first what is being written, then its checkpoints, oldest first, the newest by itself.
 * So a crash leaves the run as it was, or with less history, or gone, never set back. What others have
 * put into the folder, and the quarantine, stay.
 *
 * @param expected - the sequence that the run must be at, or it is left alone; any if absent.
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
  const sync = (): Promise<void> => ignoring(syncFolder(fs, folder));
  for (let removed = false; ; removed = true) {
    const listing = await list(fs, folder);
    const { checkpoints = [], temporaries = [], gone = [] } = listing ?? {};
    const newest = checkpoints.at(-1);
    if (expected !== undefined && newest !== undefined && newest !== expected) return removed;
    for (const name of temporaries) {
      await ignoring(fs.unlink(join(folder, name)));
    }
    if (newest === undefined && temporaries.length === 0) {
      for (const sequence of gone) await ignoring(fs.unlink(join(folder, goneName(sequence))));
      break;
    }
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
  await ignoring(fs.rmdir(join(folder, QUARANTINE)), stays);
  const removing = fs.rmdir(folder).then(() => true);
  const gone = await ignoring(removing, stays, false);
  if (gone && durable) await syncFolder(fs, dirname(folder));
}

/** How long a temporary file is left alone if its writer can't be asked, in milliseconds. */
const ABANDONED = 60 * 60 * 1000;

/** Of these temporary files those whose writer is another process, and dead as far as can be seen. */
export function leftovers(fs: FileSystem, temporaries: readonly string[]): string[] {
  return temporaries.filter((name) => {
    const owner = ownerOf(name) ?? fs.owner;
    return owner !== fs.owner && !fs.isAlive(owner);
  });
}

/**
 * Removes temporary files whose writer is dead, or that are an hour old. Should one be mistaken, its
 * writer finds its file gone and writes it again.
 */
export async function sweep(
  fs: FileSystem,
  folder: string,
  temporaries: readonly string[],
  time: number,
): Promise<void> {
  const dead = new Set(leftovers(fs, temporaries));
  for (const name of temporaries) {
    const path = join(folder, name);
    if (!dead.has(name)) {
      if (ownerOf(name) === fs.owner) continue;
      const found = await ignoring(fs.lstat(path));
      if (found === undefined || time - found.modified < ABANDONED) continue;
    }
    await ignoring(fs.unlink(path));
  }
}
