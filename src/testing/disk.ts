/** A file on an in-memory disk. Its bytes are replaced, never modified. */
export interface FileNode {
  readonly kind: "file";
  /** Its inode. */
  readonly number: number;
  bytes: Uint8Array;
  /** When it was last written, in milliseconds since 1970. */
  modified: number;
}

/** A folder on an in-memory disk. */
export interface FolderNode {
  readonly kind: "folder";
  readonly number: number;
  readonly entries: Map<string, Node>;
}

/** What a name can refer to. */
export type Node = FileNode | FolderNode;

export function newFolder(number: number): FolderNode {
  return { kind: "folder", number, entries: new Map() };
}
