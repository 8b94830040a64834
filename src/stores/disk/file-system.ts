import { systemCode } from "../../errors.js";
import type { Processes } from "../process.js";

/** What a name in a folder refers to. A symbolic link is `other`: it is never followed. */
export type FileKind = "file" | "folder" | "other";

/** Metadata of a file. */
export interface FileInfo {
  readonly kind: FileKind;
  /** Distinguishes this file from every other that exists or is open at the same time. */
  readonly id: string;
  readonly size: number;
  /** When it was last written, in milliseconds since 1970. */
  readonly modified: number;
}

/** The beginning of a file, and the size of the whole. */
export interface FileHead {
  readonly bytes: Uint8Array;
  readonly size: number;
}

/**
 * Everything that the file store needs from a file system; a test can replace it with one that crashes or
 * fails at any call. Errors carry Node's codes, such as `ENOENT`.
 */
export interface FileSystem {
  /** The processes that share it. */
  readonly processes: Processes;
  /** Identifies this user of the file system in the names of temporary files and claims. */
  readonly owner: string;

  /** Creates a file with mode 0600 and opens it for writing. `EEXIST` if the name is taken. */
  create(path: string): Promise<number>;
  /** Opens a file for reading; never through a symbolic link (`ELOOP`). */
  open(path: string): Promise<number>;
  /** Opens a folder to sync it; `undefined` on systems that can't. */
  openFolder(path: string): Promise<number | undefined>;
  /** Writes all of the bytes. */
  write(file: number, bytes: Uint8Array): Promise<void>;
  /** Reads at most `length` bytes from the beginning of the file. */
  read(file: number, length: number): Promise<Uint8Array>;
  /** Makes the contents of a file, or the names in a folder, survive a power cut. */
  sync(file: number): Promise<void>;
  stat(file: number): Promise<FileInfo>;
  close(file: number): Promise<void>;

  /** The id of the file with this name; `undefined` if there is none. For names that were used a moment ago. */
  idOf(path: string): Promise<string | undefined>;
  /** Metadata of a name; a symbolic link is not followed. */
  lstat(path: string): Promise<FileInfo>;
  readdir(path: string): Promise<string[]>;
  /** Creates a folder with mode 0700. `EEXIST` if the name is taken. */
  mkdir(path: string): Promise<void>;
  /** Removes an empty folder. */
  rmdir(path: string): Promise<void>;
  /** Gives a file a second name. `EEXIST` if it is taken: of several attempts at once, one succeeds. */
  link(from: string, to: string): Promise<void>;
  /** Renames a file, replacing any file of the new name. */
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;

  /** The beginnings of many files; `undefined` for what is missing or not a file. */
  heads(paths: readonly string[], length: number): Promise<(FileHead | undefined)[]>;
}

/** The result of an action; `otherwise` if it fails with one of these codes. */
export async function ignoring<T, U = undefined>(
  action: Promise<T>,
  codes: readonly string[] = ["ENOENT"],
  otherwise?: U,
): Promise<T | U> {
  try {
    return await action;
  } catch (error) {
    if (codes.includes(systemCode(error))) return otherwise as U;
    throw error;
  }
}

/** Whether an action succeeds; false if it fails with one of these codes. */
export function succeeds(
  action: Promise<unknown>,
  codes: readonly string[] = ["ENOENT"],
): Promise<boolean> {
  return ignoring(
    action.then(() => true),
    codes,
    false,
  );
}

/** Like `Promise.all`, but nothing is still running when it rejects: a file must not be closed during a call. */
export async function together<T extends readonly unknown[]>(
  actions: readonly [...{ [K in keyof T]: Promise<T[K]> | T[K] }],
): Promise<T> {
  const outcomes = await Promise.allSettled(actions);
  const values = outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
  return values as unknown as T;
}

/** The error codes with which exFAT, some network shares, Android and old Windows refuse hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EISDIR"];

/**
 * Takes a name for a file; of several attempts at once, exactly one succeeds:
 *
 * - `linked`: the file has both names now;
 * - `reserved`: this file system has no links; an empty file holds the name until the file is renamed;
 * - `taken`: another file has the name;
 * - `gone`: the file or the folder no longer exists.
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
    const code = systemCode(error);
    if (code === "EEXIST") return "taken";
    if (code === "ENOENT") return "gone";
    if (!NO_LINKS.includes(code)) throw error;
  }
  try {
    await fs.close(await fs.create(to));
    return "reserved";
  } catch (error) {
    if (systemCode(error) === "EEXIST") return "taken";
    throw error;
  }
}
