import { FileStore } from "waymark/stores/file";
import { JournalStore } from "waymark/stores/journal";
import type { FileSystem } from "../../src/stores/file/file-system.js";

/** Where the stores of these tests keep their files. */
export const ROOT = "/data/.waymark";

export interface SubjectOptions {
  readonly keep?: number;
  readonly durability?: "fsync" | "os";
  /** How large a file of the log gets; so small that it is sealed and compacted all the time, unless said otherwise. */
  readonly logBytes?: number;
}

/** A store that keeps files, on a disk of a test's own. */
export interface Subject {
  readonly name: string;
  readonly open: (fileSystem: FileSystem, options?: SubjectOptions) => FileStore | JournalStore;
}

export function openFileStore(
  fileSystem: FileSystem,
  { keep = 2, durability = "fsync" }: SubjectOptions = {},
): FileStore {
  return new FileStore({ root: ROOT, keep, durability }, fileSystem);
}

export function openJournal(
  fileSystem: FileSystem,
  { keep = 2, durability = "fsync", logBytes = 1500 }: SubjectOptions = {},
): JournalStore {
  const options = { root: ROOT, keep, durability, snapshotEvery: 3, logBytes };
  return new JournalStore(options, fileSystem);
}

/** What is the same for both is tested with both. */
export const subjects: readonly Subject[] = [
  { name: "FileStore", open: openFileStore },
  { name: "JournalStore", open: openJournal },
];
