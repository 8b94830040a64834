import type { FileSystem } from "./file-system.js";
import { codeOf } from "./file-system.js";

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
  try {
    await fs.sync(folder);
  } catch (error) {
    // Some network file systems know no such call for a folder; they write names at once.
    if (!["EINVAL", "ENOTSUP", "EOPNOTSUPP"].includes(codeOf(error))) throw error;
  }
}
