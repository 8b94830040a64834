import { type FolderNode, type Node, newFolder } from "./disk.js";

/** One change of a disk, or a mark between changes. */
export type Change =
  /** Names of a folder that were set, or removed (`undefined`), atomically. */
  | {
      readonly type: "names";
      readonly folder: number;
      readonly set: readonly (readonly [string, Node | undefined])[];
    }
  /** The new contents of a file. */
  | {
      readonly type: "write";
      readonly node: number;
      readonly bytes: Uint8Array;
      readonly synced: boolean;
    }
  /** All changes so far of a file, or of a folder's names, now survive a power cut. */
  | { readonly type: "sync"; readonly node: number }
  | { readonly type: "mark"; readonly label: string };

/** What one power cut leaves behind. */
export interface Crash {
  /** The change after which the power was cut, from 0. */
  readonly at: number;
  /** The marks made before. */
  readonly marks: readonly string[];
  /** The contents of the disk. */
  readonly root: FolderNode;
}

type NamesChange = Extract<Change, { type: "names" }>;

/** What may become of bytes written since the last sync: lost, partial, a hole of zeros, or complete. */
const tears: readonly ((bytes: Uint8Array, synced: Uint8Array) => Uint8Array)[] = [
  (_, synced) => synced,
  (bytes, synced) => bytes.slice(0, (synced.length + bytes.length) >> 1),
  (bytes, synced) => Buffer.concat([synced, new Uint8Array(bytes.length - synced.length)]),
  (bytes) => bytes,
];

/**
 * Everything that a power cut can leave behind, after each change. What was synced is there. Of the rest, each
 * change of a folder's names may or may not be there, regardless of the order they were made in, and each file's
 * content is missing, torn, a hole or complete. If there are more than `most` combinations, that many are drawn at
 * random.
 */
export function* crashesOf(
  before: FolderNode,
  changes: readonly Change[],
  random: () => number,
  most = 128,
): Generator<Crash> {
  const draw = (options: number): number => Math.floor(random() * options);
  for (let at = 0; at <= changes.length; at++) {
    const done = changes.slice(0, at);
    // A mark changes nothing on the disk, but what it names is promised from here on.
    const marks = done.flatMap((change) => (change.type === "mark" ? [change.label] : []));
    const open = unsynced(done);
    const combinations = 2 ** open.names.length * tears.length ** open.writes.length;
    for (let count = 0; count < Math.min(combinations, most); count++) {
      const pick = combinations <= most ? digitsOf(count) : draw;
      yield { at, marks, root: leave(before, done, open, pick) };
    }
  }
}

/** What one power cut now leaves, of what was not synced by what is picked. */
export function powerCut(
  before: FolderNode,
  changes: readonly Change[],
  pick: (options: number) => number,
): FolderNode {
  return leave(before, changes, unsynced(changes), pick);
}

/** Picks as the digits of a number say, so that counting up goes through all combinations. */
function digitsOf(number: number): (options: number) => number {
  let rest = number;
  return (options) => {
    const digit = rest % options;
    rest = Math.floor(rest / options);
    return digit;
  };
}

interface Unsynced {
  readonly names: readonly NamesChange[];
  readonly writes: readonly number[];
}

/** The changes that were not synced afterwards. */
function unsynced(done: readonly Change[]): Unsynced {
  const synced = new Set<number>();
  const names: NamesChange[] = [];
  const writes = new Set<number>();
  for (const change of done.toReversed()) {
    if (change.type === "sync") synced.add(change.node);
    if (change.type === "names" && !synced.has(change.folder)) names.push(change);
    if (change.type === "write" && !synced.has(change.node)) {
      if (change.synced) synced.add(change.node);
      else writes.add(change.node);
    }
  }
  return { names, writes: [...writes] };
}

/** The disk with the unsynced changes that are picked: whether each name is there, and how each write came out. */
function leave(
  before: FolderNode,
  done: readonly Change[],
  { names, writes }: Unsynced,
  pick: (options: number) => number,
): FolderNode {
  const lost = new Set(names.filter(() => pick(2) === 0));
  const torn = new Map<number, (typeof tears)[number]>();
  for (const node of writes) torn.set(node, tears[pick(tears.length)] ?? ((bytes) => bytes));
  const contents = contentsOf(before, done, torn);
  const folders = new Map<number, FolderNode>();
  const restore = (node: Node): Node => {
    const known = folders.get(node.number);
    if (known !== undefined) return known;
    if (node.kind === "file") {
      const bytes = contents.get(node.number) ?? new Uint8Array();
      return { ...node, bytes };
    }
    const folder = newFolder(node.number);
    folders.set(node.number, folder);
    return folder;
  };
  const root = newFolder(before.number);
  folders.set(before.number, root);
  const fill = (from: FolderNode, to: FolderNode): void => {
    for (const [name, node] of from.entries) {
      const restored = restore(node);
      to.entries.set(name, restored);
      if (node.kind === "folder" && restored.kind === "folder") fill(node, restored);
    }
  };
  fill(before, root);
  for (const change of done) {
    if (change.type !== "names" || lost.has(change)) continue;
    for (const [name, node] of change.set) {
      // A folder whose own name was lost is unreachable, but a later change may bring it back.
      const folder = folders.get(change.folder) ?? newFolder(change.folder);
      folders.set(change.folder, folder);
      if (node === undefined) folder.entries.delete(name);
      else folder.entries.set(name, restore(node));
    }
  }
  return root;
}

function contentsOf(
  before: FolderNode,
  done: readonly Change[],
  torn: ReadonlyMap<number, (typeof tears)[number]>,
): Map<number, Uint8Array> {
  const contents = new Map<number, Uint8Array>();
  const collect = (folder: FolderNode): void => {
    for (const node of folder.entries.values()) {
      if (node.kind === "folder") collect(node);
      else contents.set(node.number, node.bytes);
    }
  };
  collect(before);
  const written = new Map<number, Uint8Array>();
  const synced = new Map(contents);
  for (const change of done) {
    if (change.type === "write") written.set(change.node, change.bytes);
    const isSynced = change.type === "sync" || (change.type === "write" && change.synced);
    const last = isSynced ? written.get(change.node) : undefined;
    if (isSynced && last !== undefined) synced.set(change.node, last);
  }
  for (const [node, bytes] of written) {
    const tear = torn.get(node);
    const was = synced.get(node) ?? new Uint8Array();
    contents.set(node, tear === undefined ? bytes : tear(bytes, was));
  }
  return contents;
}
