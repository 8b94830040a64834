import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";

let self: string | undefined;

/**
 * Names a part of this thread so that others can see whether it lives: the ids of its process and of
 * itself, when it was started, which a later thread with the same id was not, and where its id counts.
 */
export function ownerName(): string {
  self ??= nameOfThread();
  return `${self}-${place()}-${randomBytes(4).toString("hex")}`;
}

function nameOfThread(): string {
  const { pid } = process;
  // A call that blocks is made by the thread itself, also in a worker: so this is its own id.
  const thread = basename(read(() => readlinkSync("/proc/thread-self"))) || "0";
  return `${pid}-${thread}-${startOf(pid, thread) ?? "0"}`;
}

/** What such a name looks like, for regular expressions. */
export const OWNER = "\\d+-\\d+-\\d+-[\\da-f]{8}-[\\da-f]{8}";

/** The process id in such a name. */
export function pidOf(owner: string): number {
  return Number.parseInt(owner, 10);
}

/** Whether the thread of that name lives; `undefined` if that can't be seen from here. */
export function isLiving(owner: string): boolean | undefined {
  const [, thread = "", started, where] = /^\d+-(\d+)-(\d+)-([\da-f]+)-[\da-f]+$/.exec(owner) ?? [];
  if (where !== place()) return undefined;
  const pid = pidOf(owner);
  if (!isThere(pid)) return false;
  // Where the system says nothing of processes, it says nothing of their threads either.
  if (startOf(pid, String(pid)) === undefined) return undefined;
  return startOf(pid, thread) === started;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it is there and belongs to somebody else.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** When a thread was started, in ticks since the machine was; `undefined` if there is none, or the system does not say. A zombie has no start. */
function startOf(pid: number, thread: string): string | undefined {
  const stat = read(() => readFileSync(`/proc/${pid}/task/${thread}/stat`, "latin1"));
  // The name before these may hold anything, spaces and brackets too.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? "" : fields[19];
}

let here: string | undefined;

/** Where process ids count: on this machine, since it was started, in this container. */
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
