import type { FileStore } from "waymark/stores/file";
import type { FileSystem } from "../../src/stores/disk/file-system.js";
import { type CrashDisk, type Gate, systemError } from "../../src/testing/crash-file-system.js";

const codes = ["ENOSPC", "EIO", "EACCES", "EMFILE"];

/** What came of an action of which one call failed. */
export interface Outcome {
  /** What it gave, or was refused with. */
  readonly outcome: unknown;
  readonly disk: CrashDisk;
  /** Says which call it was. */
  readonly what: string;
  /** The calls before it. */
  readonly before: readonly string[];
}

/** Lets every call through but one, which fails; says which calls there were. */
function failAt(index: number, code: string, disk: Gate): { gate: Gate; calls: string[] } {
  const calls: string[] = [];
  const gate: Gate = (call, path) => {
    if (calls.push(`${call} ${path}`) === index + 1) throw systemError(code, path);
    return disk(call, path);
  };
  return { gate, calls };
}

/**
 * Does something once for each call that it makes, each time with that call failing, in each of the ways
 * that a disk fails.
 *
 * @returns how many calls there were.
 */
export async function failEach(
  disk: CrashDisk,
  open: (fileSystem: FileSystem) => FileStore,
  action: (store: FileStore) => Promise<unknown>,
  check: (outcome: Outcome) => Promise<void>,
  diskGate: Gate = () => {},
): Promise<number> {
  const { gate, calls } = failAt(-1, "", diskGate);
  const store = open(disk.settled().mount(gate));
  await action(store);
  await store.close();
  for (const index of calls.keys()) {
    for (const code of codes) {
      const tried = disk.settled();
      const failing = failAt(index, code, diskGate);
      const broken = open(tried.mount(failing.gate));
      const outcome = await action(broken).catch((error: unknown) => error);
      await broken.close();
      const what = `${code} in ${failing.calls[index]}`;
      await check({ outcome, disk: tried, what, before: failing.calls.slice(0, index) });
    }
  }
  return calls.length;
}
