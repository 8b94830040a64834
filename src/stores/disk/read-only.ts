import { ignoring } from "./file-system.js";
import { NodeFileSystem } from "./node-file-system.js";

/**
 * A file system that nothing can be written to, so that to look at runs changes nothing: no corrupt
 * file is moved, and nothing that a dead process left is swept. To the store it is a disk that is
 * write-protected.
 */
export class ReadOnlyFileSystem extends NodeFileSystem {
  override async create(path: string): Promise<never> {
    throw readOnly("EROFS", path);
  }

  override async mkdir(path: string): Promise<never> {
    const there = await ignoring(super.lstat(path));
    throw readOnly(there === undefined ? "EROFS" : "EEXIST", path);
  }

  override readonly rmdir = refuse;
  override readonly link = refuse;
  override readonly rename = refuse;
  override readonly unlink = refuse;
}

async function refuse(path: unknown): Promise<never> {
  throw readOnly("EROFS", String(path));
}

function readOnly(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: the store is read-only, '${path}'`), { code });
}
