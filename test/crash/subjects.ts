import { FileStore } from "waymark/stores/file";
import type { FileSystem } from "../../src/stores/disk/file-system.js";

/** Where the stores of these tests keep their files. */
export const ROOT = "/data/.waymark";

export interface SubjectOptions {
  readonly keep?: number;
  readonly durability?: "fsync" | "os";
}

/** A file store on a disk of a test's own. */
export function openFileStore(
  fileSystem: FileSystem,
  { keep = 2, durability = "fsync" }: SubjectOptions = {},
): FileStore {
  return new FileStore({ root: ROOT, keep, durability }, fileSystem);
}
