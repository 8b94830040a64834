import { dirname } from "node:path";
import { BackendError } from "../../checkpoint/records/backend.js";
import {
  CheckpointCorruptionError,
  isWaymarkError,
  messageOf,
  systemCode,
  withHint,
} from "../../errors.js";
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

/** The same file system, but it is left to the operating system when anything reaches the disk. */
export function unsynced(fs: FileSystem): FileSystem {
  const own = { sync: async () => {}, openFolder: async () => undefined };
  return new Proxy(fs, {
    get: (_, name) => {
      if (name in own) return Reflect.get(own, name);
      const member: unknown = Reflect.get(fs, name);
      return typeof member === "function" ? member.bind(fs) : member;
    },
  });
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

const FULL = "the disk or its quota is full: make room, then try again";
const DENIED = "give this process the right to read and write there";
const TOO_MANY = "too many files are open: raise the limit, or run less at once";

const advice: ReadonlyMap<string, string> = new Map([
  ["ENOSPC", FULL],
  ["EDQUOT", FULL],
  ["EACCES", DENIED],
  ["EPERM", DENIED],
  ["EROFS", "the file system is read-only: choose another root, or set readOnly"],
  ["EIO", "the disk reports an error: check it, and the file system"],
  ["EMFILE", TOO_MANY],
  ["ENFILE", TOO_MANY],
]);

/**
 * The error for a file system that failed.
 *
 * @param path - added to the message if the error has none: that of an open file does not name it.
 * @param unsure - whether a record may have been written nevertheless.
 */
export function failure(cause: unknown, path: string, unsure: boolean): BackendError {
  const message = messageOf(cause);
  const hasPath = Reflect.get(Object(cause), "path") !== undefined || path === "";
  const named = hasPath ? message : `${path}: ${message}`;
  return new BackendError(withHint(named, advice.get(systemCode(cause))), { unsure, cause });
}

/** Throws the same error if it explains itself; otherwise that of a file system that failed at this path. */
export function failing(path: string): (error: unknown) => never {
  return (error) => {
    throw isWaymarkError(error) ? error : failure(error, path, false);
  };
}

/** No document can be larger: it would not fit into a V8 string. */
const MAX_SIZE = 2 ** 30;

/** The names in a folder; `undefined` if it does not exist. A symbolic link is not followed. */
export async function namesIn(fs: FileSystem, folder: string): Promise<string[] | undefined> {
  const [found, names] = await together([
    ignoring(fs.lstat(folder)),
    ignoring(fs.readdir(folder), ["ENOENT", "ENOTDIR"]),
  ]);
  if (found === undefined) return undefined;
  if (found.kind !== "folder") throw refused(folder, "a folder", found.kind);
  return names;
}

/** The names in the root; `undefined` if it does not exist. The root itself may be a symbolic link. */
export async function namesInRoot(fs: FileSystem, root: string): Promise<string[] | undefined> {
  try {
    return await fs.readdir(root);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return undefined;
    throw systemCode(error) === "ENOTDIR" ? refused(root, "a folder", "file") : error;
  }
}

/** The error for something else in place of a file or folder. */
export function refused(
  path: string,
  expected: "a file" | "a folder",
  kind: FileKind,
): CheckpointCorruptionError {
  const actual = kind === "other" ? "a symbolic link or a device" : `a ${kind}`;
  return new CheckpointCorruptionError(
    `${path} must be ${expected}; found ${actual}, which was left untouched: move it away`,
    { expected, actual },
  );
}

/**
 * The bytes of a checkpoint's file; `undefined` if it is gone.
 *
 * @throws CheckpointCorruptionError if it is a link or a folder instead of a file.
 * @throws BackendError, which names the file, if it can't be read.
 */
export async function readFile(fs: FileSystem, path: string): Promise<Uint8Array | undefined> {
  let file: number | undefined;
  try {
    file = await fs.open(path);
    const { kind, size } = await fs.stat(file);
    if (kind !== "file") throw refused(path, "a file", kind);
    if (size > MAX_SIZE) throw new RangeError(`it has ${size} bytes, too many for a checkpoint`);
    return await fs.read(file, size);
  } catch (error) {
    const code = file === undefined ? systemCode(error) : "";
    if (code === "ENOENT") return undefined;
    if (code === "ELOOP") throw refused(path, "a file", "other");
    return failing(path)(error);
  } finally {
    if (file !== undefined) await fs.close(file);
  }
}

/** Writes a text to a new file. */
export async function writeFile(fs: FileSystem, path: string, text: string): Promise<void> {
  const file = await fs.create(path);
  try {
    await fs.write(file, Buffer.from(text));
  } finally {
    await fs.close(file);
  }
}

/** Makes the names in a folder survive a power cut. */
export async function syncFolder(fs: FileSystem, folder: string): Promise<void> {
  const file = await fs.openFolder(folder);
  if (file === undefined) return;
  try {
    await syncNames(fs, file);
  } finally {
    await fs.close(file);
  }
}

/** The same for an open folder. */
export async function syncNames(fs: FileSystem, folder: number): Promise<void> {
  // Some network file systems can't sync a folder; they write names immediately.
  await ignoring(fs.sync(folder), ["EINVAL", "ENOTSUP", "EOPNOTSUPP"]);
}

/**
 * Creates a folder and its parents, as far as they are missing; their names survive a power cut, even if the process
 * that created them died before syncing them.
 */
export async function makeFolders(fs: FileSystem, path: string): Promise<void> {
  const missing = await missingFolders(fs, path);
  const [first] = missing;
  const found = first === undefined ? path : dirname(first);
  // A process that may not read the parent did not create it.
  await ignoring(syncFolder(fs, dirname(found)), ["EACCES", "EPERM"]);
  for (const folder of missing) {
    await ignoring(fs.mkdir(folder), ["EEXIST"]);
    await syncFolder(fs, dirname(folder));
  }
}

/** This folder and its parents, as far as they are missing, outermost first. */
async function missingFolders(fs: FileSystem, folder: string): Promise<string[]> {
  const found = await ignoring(fs.lstat(folder));
  if (found !== undefined || dirname(folder) === folder) return [];
  return [...(await missingFolders(fs, dirname(folder))), folder];
}

/** The folder of all runs, created on first use. */
export class Root {
  readonly path: string;
  readonly #fs: FileSystem;
  #ready: Promise<void> | undefined;

  constructor(fs: FileSystem, path: string) {
    this.#fs = fs;
    this.path = path;
  }

  /**
   * Ensures that a folder in the root exists.
   *
   * @param durable - whether it must survive a power cut, even if the process that created it died before syncing it.
   */
  async makeFolder(folder: string, durable = true): Promise<void> {
    for (let isAgain = false; ; isAgain = true) {
      this.#ready ??= makeFolders(this.#fs, this.path);
      try {
        await this.#ready;
        await ignoring(this.#fs.mkdir(folder), ["EEXIST"]);
        break;
      } catch (error) {
        this.#ready = undefined;
        // If the root was removed in the meantime, it is created again.
        if (isAgain || systemCode(error) !== "ENOENT") throw error;
      }
    }
    if (durable) await syncFolder(this.#fs, this.path);
  }
}
