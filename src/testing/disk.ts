/** A file on a disk in memory. Its bytes are replaced, never written to. */
export interface FileNode {
  readonly kind: "file";
  /** Its inode. */
  readonly number: number;
  bytes: Uint8Array;
}

/** A folder on a disk in memory. */
export interface FolderNode {
  readonly kind: "folder";
  readonly number: number;
  readonly entries: Map<string, Node>;
}

/** What a name can stand for. */
export type Node = FileNode | FolderNode;

export function newFolder(number: number): FolderNode {
  return { kind: "folder", number, entries: new Map() };
}
