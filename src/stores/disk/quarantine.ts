import { join } from "node:path";
import { reserve } from "./append.js";
import { type FileSystem, ignoring } from "./file-system.js";
import { namesIn, syncFolder } from "./folders.js";
import { checkpointName, QUARANTINE, quarantineName } from "./layout.js";

/**
 * Moves a file that is not what was written out of the way, where a person can look at it. It has its
 * new name for good before it loses the old one, so that no crash can lose it, and a writer that
 * takes the old name afterwards sees that it was taken before.
 *
 * @param isBad - asked once more where there are no links, as what was seen may have been a name
 *   that a living writer had only reserved.
 * @returns where it is now; `undefined` if it is not there, or not bad, any more.
 */
export async function quarantine(
  fs: FileSystem,
  folder: string,
  sequence: number,
  durable: boolean,
  isBad: () => Promise<boolean>,
): Promise<string | undefined> {
  const path = join(folder, checkpointName(sequence));
  const aside = join(folder, QUARANTINE);
  const making = ignoring(fs.mkdir(aside), ["EEXIST"]).then(() => true);
  if (!(await ignoring(making, ["ENOENT"], false))) return undefined;
  await namesIn(fs, aside); // refuses a link in its place
  for (let attempt = 0; ; attempt++) {
    const target = join(aside, quarantineName(sequence, attempt));
    let how = await reserve(fs, path, target);
    if (how === "taken") how = await leftBehind(fs, path, target);
    if (how === "taken") continue;
    if (how === "gone") return undefined;
    if (how === "reserved") {
      if (!(await isBad())) {
        await fs.unlink(target);
        return undefined;
      }
      const moving = fs.rename(path, target).then(() => true);
      if (!(await ignoring(moving, ["ENOENT"], false))) {
        await fs.unlink(target);
        return undefined;
      }
    }
    if (durable) {
      await syncFolder(fs, aside);
      await syncFolder(fs, folder);
    }
    if (how === "linked") await ignoring(fs.unlink(path));
    return target;
  }
}

/** A name that is taken may be of this very move, begun by somebody who was stopped in the middle. */
async function leftBehind(
  fs: FileSystem,
  path: string,
  target: string,
): Promise<"linked" | "taken" | "gone"> {
  const found = await ignoring(fs.lstat(path));
  const there = await ignoring(fs.lstat(target));
  return found === undefined ? "gone" : found.id === there?.id ? "linked" : "taken";
}
