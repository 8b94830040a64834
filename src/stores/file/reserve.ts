import { codeOf, type FileSystem } from "./file-system.js";

/** How exFAT, some network shares, Android and old Windows say that a file can't have two names. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EISDIR"];

/**
 * Takes a name for a file, so that of all who try exactly one succeeds:
 *
 * - `linked`: the file has both names now;
 * - `reserved`: this file system has no links; an empty file keeps the name until the file is renamed;
 * - `taken`: somebody else has the name;
 * - `gone`: the file, or the folder, is not there any more.
 */
export async function reserve(
  fs: FileSystem,
  from: string,
  to: string,
): Promise<"linked" | "reserved" | "taken" | "gone"> {
  try {
    await fs.link(from, to);
    return "linked";
  } catch (error) {
    const code = codeOf(error);
    if (code === "EEXIST") return "taken";
    if (code === "ENOENT") return "gone";
    if (!NO_LINKS.includes(code)) throw error;
  }
  try {
    await fs.close(await fs.create(to));
    return "reserved";
  } catch (error) {
    if (codeOf(error) === "EEXIST") return "taken";
    throw error;
  }
}
