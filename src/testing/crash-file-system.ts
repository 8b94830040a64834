import { basename, dirname } from "node:path";
import { now } from "../clock.js";
import {
  type FileHead,
  type FileInfo,
  type FileSystem,
  ignoring,
} from "../stores/disk/file-system.js";
import type { Processes } from "../stores/process.js";
import { type Change, type Crash, crashesOf, powerCut } from "./crash-points.js";
import { type FileNode, type FolderNode, type Node, newFolder } from "./disk.js";

/**
 * Called before each file-system call of a process. It may wait, throw the error that the call should fail with,
 * or never return.
 */
export type Gate = (call: string, path: string) => Promise<void> | void;

let mounts = 0;

/** A process to which all others count as dead, or alive. */
function newProcess(othersAlive: boolean): Processes {
  const pid = ++mounts;
  const owner = `${pid}-${pid}-0-00000000-00000000`;
  const isLiving = (other: string): boolean => other === owner || othersAlive;
  return { host: "simulated", pid, newOwner: () => owner, isLiving };
}

/**
 * An in-memory disk that several processes use and that can lose power. It records every change and every sync, so
 * that a test can enumerate what a power cut at any point may leave behind.
 */
export class CrashDisk {
  readonly #root: FolderNode;
  /** What was durably on the disk before the first change. */
  readonly #before: FolderNode;
  readonly #changes: Change[] = [];
  #nodes = 0;

  constructor(root: FolderNode = newFolder(0)) {
    this.#root = root;
    this.#before = copy(root) as FolderNode;
    this.#nodes = highest(root);
  }

  /**
   * The file system as seen by one more process. To it, all other processes on this disk are dead, or alive if
   * `othersAlive`.
   */
  mount(gate: Gate = () => {}, othersAlive = false): FileSystem {
    return this.mountAs(newProcess(othersAlive), gate);
  }

  /** The same, of a process that sees the others in its own way. */
  mountAs(processes: Processes, gate: Gate): FileSystem {
    return new MountedDisk(this, processes, gate);
  }

  /** The same disk after a clean shutdown, with everything on it durable. */
  settled(): CrashDisk {
    return new CrashDisk(copy(this.#root) as FolderNode);
  }

  /** The same disk after a power cut, of what was not synced with what is picked; see {@link crashesOf}. */
  afterPowerCut(pick: (options: number) => number): CrashDisk {
    return new CrashDisk(powerCut(this.#before, this.#changes, pick));
  }

  /** Records that something is promised from now on, such as an acknowledged save. */
  mark(label: string): void {
    this.#changes.push({ type: "mark", label });
  }

  /** Everything that a power cut at any point until now can leave behind; see {@link crashesOf}. */
  *crashes(random: () => number, most?: number): Generator<Crash & { readonly disk: CrashDisk }> {
    for (const crash of crashesOf(this.#before, this.#changes, random, most)) {
      yield { ...crash, disk: new CrashDisk(crash.root) };
    }
  }

  /** The current contents of the disk by path; paths of folders end in a slash. */
  contents(): Map<string, Uint8Array> {
    const found = new Map<string, Uint8Array>();
    const walk = (folder: FolderNode, path: string): void => {
      for (const [name, node] of folder.entries) {
        if (node.kind === "file") found.set(path + name, node.bytes);
        else walk(node, `${path}${name}/`);
        if (node.kind === "folder") found.set(`${path}${name}/`, new Uint8Array());
      }
    };
    walk(this.#root, "/");
    return found;
  }

  /** Changes a file without recording it, as faulty hardware would. */
  tamper(path: string, change: (bytes: Uint8Array) => Uint8Array): void {
    const node = this.find(path);
    if (node.kind !== "file") throw systemError("EISDIR", path);
    node.bytes = change(node.bytes);
    this.#changes.push({ type: "write", node: node.number, bytes: node.bytes, synced: true });
  }

  /** @internal */
  find(path: string): Node {
    let node: Node = this.#root;
    for (const name of path.split("/").filter((part) => part !== "")) {
      if (node.kind !== "folder") throw systemError("ENOTDIR", path);
      const next: Node | undefined = node.entries.get(name);
      if (next === undefined) throw systemError("ENOENT", path);
      node = next;
    }
    return node;
  }

  /** @internal */
  folderOf(path: string): FolderNode {
    const folder = this.find(dirname(path));
    if (folder.kind !== "folder") throw systemError("ENOTDIR", path);
    return folder;
  }

  /** @internal Gives a node a name that must be free. */
  add(path: string, node: Node | "file" | "folder"): Node {
    const folder = this.folderOf(path);
    const name = basename(path);
    if (folder.entries.has(name)) throw systemError("EEXIST", path);
    const added: Node =
      node === "folder"
        ? newFolder(++this.#nodes)
        : node === "file"
          ? { kind: "file", number: ++this.#nodes, bytes: new Uint8Array(), modified: now() }
          : node;
    folder.entries.set(name, added);
    this.#changes.push({ type: "names", folder: folder.number, set: [[name, added]] });
    return added;
  }

  /** @internal */
  remove(path: string, kind: Node["kind"]): void {
    const node = this.find(path);
    if (node.kind !== kind) throw systemError(kind === "file" ? "EISDIR" : "ENOTDIR", path);
    if (node.kind === "folder" && node.entries.size > 0) throw systemError("ENOTEMPTY", path);
    const folder = this.folderOf(path);
    folder.entries.delete(basename(path));
    this.#changes.push({
      type: "names",
      folder: folder.number,
      set: [[basename(path), undefined]],
    });
  }

  /** @internal A rename inside one folder is a single change, as all file systems guarantee. */
  rename(from: string, to: string): void {
    const node = this.find(from);
    const [source, target] = [this.folderOf(from), this.folderOf(to)];
    const gone: [string, undefined] = [basename(from), undefined];
    const there: [string, Node] = [basename(to), node];
    source.entries.delete(gone[0]);
    target.entries.set(there[0], node);
    if (source === target) {
      this.#changes.push({ type: "names", folder: source.number, set: [gone, there] });
    } else {
      this.#changes.push({ type: "names", folder: target.number, set: [there] });
      this.#changes.push({ type: "names", folder: source.number, set: [gone] });
    }
  }

  /** @internal */
  write(node: FileNode, bytes: Uint8Array): void {
    node.bytes = Buffer.concat([node.bytes, bytes]);
    node.modified = now();
    this.#changes.push({ type: "write", node: node.number, bytes: node.bytes, synced: false });
  }

  /** @internal */
  sync(node: Node): void {
    this.#changes.push({ type: "sync", node: node.number });
  }
}

class MountedDisk implements FileSystem {
  readonly processes: Processes;
  readonly owner: string;
  readonly #disk: CrashDisk;
  readonly #gate: Gate;
  readonly #open = new Map<number, Node>();
  #files = 0;

  constructor(disk: CrashDisk, processes: Processes, gate: Gate) {
    this.#disk = disk;
    this.processes = processes;
    this.owner = processes.newOwner();
    this.#gate = gate;
  }

  async create(path: string): Promise<number> {
    await this.#gate("create", path);
    return this.#opened(this.#disk.add(path, "file"));
  }

  async open(path: string): Promise<number> {
    await this.#gate("open", path);
    return this.#opened(this.#disk.find(path));
  }

  async openFolder(path: string): Promise<number> {
    await this.#gate("openFolder", path);
    return this.#opened(this.#disk.find(path));
  }

  async write(file: number, bytes: Uint8Array): Promise<void> {
    const node = this.#node(file);
    if (node.kind !== "file") throw systemError("EISDIR", String(file));
    try {
      await this.#gate("write", "");
    } catch (error) {
      // A disk fills up in the middle of a write, not before it.
      this.#disk.write(node, bytes.subarray(0, bytes.length >> 1));
      throw error;
    }
    this.#disk.write(node, bytes);
  }

  async read(file: number, length: number): Promise<Uint8Array> {
    await this.#gate("read", "");
    return bytesOf(this.#node(file)).slice(0, length);
  }

  async sync(file: number): Promise<void> {
    const node = this.#node(file);
    await this.#gate("sync", node.kind);
    this.#disk.sync(node);
  }

  async stat(file: number): Promise<FileInfo> {
    await this.#gate("stat", "");
    return this.#info(this.#node(file));
  }

  async close(file: number): Promise<void> {
    await this.#gate("close", "");
    this.#node(file);
    this.#open.delete(file);
  }

  async idOf(path: string): Promise<string | undefined> {
    return (await ignoring(this.lstat(path)))?.id;
  }

  async lstat(path: string): Promise<FileInfo> {
    await this.#gate("lstat", path);
    return this.#info(this.#disk.find(path));
  }

  async readdir(path: string): Promise<string[]> {
    await this.#gate("readdir", path);
    const node = this.#disk.find(path);
    if (node.kind !== "folder") throw systemError("ENOTDIR", path);
    return [...node.entries.keys()];
  }

  async mkdir(path: string): Promise<void> {
    await this.#gate("mkdir", path);
    this.#disk.add(path, "folder");
  }

  async rmdir(path: string): Promise<void> {
    await this.#gate("rmdir", path);
    this.#disk.remove(path, "folder");
  }

  async link(from: string, to: string): Promise<void> {
    await this.#gate("link", to);
    this.#disk.add(to, this.#disk.find(from));
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#gate("rename", to);
    this.#disk.rename(from, to);
  }

  async unlink(path: string): Promise<void> {
    await this.#gate("unlink", path);
    this.#disk.remove(path, "file");
  }

  async heads(paths: readonly string[], length: number): Promise<(FileHead | undefined)[]> {
    const heads: (FileHead | undefined)[] = [];
    for (const path of paths) {
      await this.#gate("heads", path);
      try {
        const bytes = bytesOf(this.#disk.find(path));
        heads.push({ bytes: bytes.slice(0, length), size: bytes.length });
      } catch {
        heads.push(undefined);
      }
    }
    return heads;
  }

  #info(node: Node): FileInfo {
    const { bytes, modified } = node.kind === "file" ? node : { bytes: [], modified: 0 };
    return { kind: node.kind, id: String(node.number), size: bytes.length, modified };
  }

  #opened(node: Node): number {
    this.#open.set(++this.#files, node);
    return this.#files;
  }

  #node(file: number): Node {
    const node = this.#open.get(file);
    if (node === undefined) throw systemError("EBADF", String(file));
    return node;
  }
}

/** A gate that simulates a file system without hard links, such as exFAT. */
export const withoutLinks: Gate = (call, path) => {
  if (call === "link") throw systemError("EPERM", path);
};

/** An error like those of `node:fs`. */
export function systemError(code: string, path = ""): Error {
  return Object.assign(new Error(`${code}: simulated, '${path}'`), { code, path });
}

function bytesOf(node: Node): Uint8Array {
  if (node.kind === "folder") throw systemError("EISDIR");
  return node.bytes;
}

function copy(node: Node): Node {
  if (node.kind === "file") return { ...node };
  const entries = new Map([...node.entries].map(([name, child]) => [name, copy(child)]));
  return { ...node, entries };
}

function highest(node: Node): number {
  const below = node.kind === "file" ? [] : [...node.entries.values()].map(highest);
  return Math.max(node.number, ...below);
}
