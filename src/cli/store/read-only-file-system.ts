import { basename } from "node:path";
import { codeOf, type FileInfo, type FileSystem, unless } from "../../stores/file/file-system.js";
import { NodeFileSystem } from "../../stores/file/node-file-system.js";
import { logNumber } from "../../stores/journal/layout.js";

/**
 * A file system that nothing can be written to, so that to look at runs changes nothing: no corrupt
 * file is moved, nothing that a dead process left is swept, no log is begun. A store that may not
 * write goes on as it does on a disk that is write-protected.
 */
export class ReadOnlyFileSystem extends NodeFileSystem implements FileSystem {
  /** Files of a log that a reader wants to begin: they are empty, and only here. */
  readonly #begun = new Map<string, number>();

  override async create(path: string): Promise<number> {
    const there = await unless(["ENOENT"], super.lstat(path), undefined);
    if (there !== undefined) throw coded("EEXIST", path);
    if (logNumber(basename(path)) === undefined) throw coded("EROFS", path);
    const file = -1 - this.#begun.size;
    this.#begun.set(path, file);
    return file;
  }

  override async open(path: string): Promise<number> {
    try {
      return await super.open(path);
    } catch (error) {
      const begun = this.#begun.get(path);
      if (begun === undefined || codeOf(error) !== "ENOENT") throw error;
      return begun;
    }
  }

  override async openToAppend(path: string): Promise<number> {
    throw coded("EROFS", path);
  }

  override async openFolder(): Promise<undefined> {
    return undefined;
  }

  override async stat(file: number): Promise<FileInfo> {
    if (file >= 0) return super.stat(file);
    return { kind: "file", id: `begun:${file}`, size: 0, named: true, modified: 0 };
  }

  override async read(file: number, length: number, from = 0): Promise<Uint8Array> {
    return file < 0 ? new Uint8Array() : super.read(file, length, from);
  }

  override async close(file: number): Promise<void> {
    if (file >= 0) await super.close(file);
  }

  override async mkdir(path: string): Promise<void> {
    const there = await unless(["ENOENT"], super.lstat(path), undefined);
    throw coded(there === undefined ? "EROFS" : "EEXIST", path);
  }

  override readonly rmdir = refuse;
  override readonly link = refuse;
  override readonly rename = refuse;
  override readonly unlink = refuse;
}

async function refuse(path: unknown): Promise<never> {
  throw coded("EROFS", String(path));
}

function coded(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: read-only, ${path}`), { code });
}
