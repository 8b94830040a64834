import { dirname } from "node:path";
import { type FileSystem, unless } from "./file-system.js";
import { namesIn } from "./listing.js";
import { syncFolder } from "./sync.js";

/**
 * Sees to it that a folder and its root around it are there for good, also when they were made by
 * one who died at it.
 *
 * @throws CheckpointCorruptionError when there is something else in its place, such as a link.
 */
export async function makeFolder(fs: FileSystem, folder: string, durable: boolean): Promise<void> {
  const root = dirname(folder);
  const created = await missing(fs, root);
  for (const one of [...created, folder]) {
    await unless(["EEXIST"], fs.mkdir(one), undefined);
    if (durable) await syncFolder(fs, dirname(one));
  }
  // Whoever may not read what is around the root did not make it.
  if (durable && created.length === 0) {
    await unless(["EACCES", "EPERM"], syncFolder(fs, dirname(root)), undefined);
  }
  await namesIn(fs, folder);
}

/** The folders on the way to this one that are not there yet, from the top down. */
export async function missing(fs: FileSystem, folder: string): Promise<string[]> {
  const found = await unless(["ENOENT"], fs.lstat(folder), undefined);
  if (found !== undefined || dirname(folder) === folder) return [];
  return [...(await missing(fs, dirname(folder))), folder];
}
