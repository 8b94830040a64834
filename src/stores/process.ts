import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";
import { systemCode } from "../errors.js";

/** How a process sees itself and others; tests replace it. */
export interface Processes {
  /** The machine that it runs on, for display. */
  readonly host: string;
  readonly pid: number;
  /** A new name, each time different, by which others can see whether this process is alive. */
  newOwner(): string;
  /** Whether the process with this name is alive; `undefined` if that can't be determined here. */
  isLiving(owner: string): boolean | undefined;
}

/** The processes of the operating system. */
export const systemProcesses: Processes = {
  get host() {
    return hostname();
  },
  pid: process.pid,
  newOwner: ownerName,
  isLiving,
};

let self: string | undefined;

/**
 * A name by which others can see whether this thread is alive: its process id and thread id, its start time,
 * which distinguishes it from a later thread with the same id, and the scope in which these ids are unique.
 */
function ownerName(): string {
  self ??= nameOfThread();
  return `${self}-${place()}-${randomBytes(4).toString("hex")}`;
}

function nameOfThread(): string {
  const { pid } = process;
  // A synchronous call runs on the calling thread, even in a worker, so this is that thread's id.
  const thread = basename(read(() => readlinkSync("/proc/thread-self"))) || "0";
  return `${pid}-${thread}-${startOf(pid, thread) ?? "0"}`;
}

/** The pattern of such a name, for regular expressions. */
export const OWNER = "\\d+-\\d+-\\d+-[\\da-f]{8}-[\\da-f]{8}";

/** The process id in such a name. */
export function pidOf(owner: string): number {
  return Number.parseInt(owner, 10);
}

function isLiving(owner: string): boolean | undefined {
  const [, thread = "", started, where] = /^\d+-(\d+)-(\d+)-([\da-f]+)-[\da-f]+$/.exec(owner) ?? [];
  if (where !== place()) return undefined;
  const pid = pidOf(owner);
  if (!isThere(pid)) return false;
  // A system that hides processes also hides their threads.
  if (startOf(pid, String(pid)) === undefined) return undefined;
  return startOf(pid, thread) === started;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it exists and belongs to another user.
    return systemCode(error) === "EPERM";
  }
}

/**
 * The start time of a thread, in ticks since boot; `undefined` if there is no such thread, or the system does
 * not report it; `""` for a zombie.
 */
function startOf(pid: number, thread: string): string | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1"));
  // The name before these fields may contain anything, including spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? "" : fields[19];
}

let here: string | undefined;

/** The scope of process ids: this machine, since its last boot, in this container. */
function place(): string {
  here ??= createHash("sha256")
    .update(hostname())
    .update(read(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1")))
    .update(read(() => readlinkSync("/proc/self/ns/pid")))
    .digest("hex")
    .slice(0, 8);
  return here;
}

function read(get: () => string): string {
  try {
    return get();
  } catch {
    return "";
  }
}
