import { basename, dirname } from "node:path";
import { headerOf } from "../../checkpoint/records/document.js";
import type { RecordHeader } from "../../checkpoint/records/header.js";
import { type CheckpointStore, type Claim, wrap } from "../../checkpoint/store.js";
import type { FileSystem } from "../../stores/disk/file-system.js";
import { QUARANTINE, sequenceOf } from "../../stores/disk/layout.js";
import { FileStore } from "../../stores/file.js";
import { CrashDisk, type Gate, systemError } from "../crash-file-system.js";
import type { FileNode } from "../disk.js";
import type { Checker } from "./checker.js";
import { SeededRandom } from "./seeded-random.js";
import type { Storage } from "./storage.js";
import type { Machine, Process, World } from "./world.js";

/** Faults of the file store, or of what it relies on, that a test plants. */
export interface FileBugs {
  /** A file may take the name of another. */
  readonly noFence?: boolean;
  /** A save is acknowledged before the disk has it. */
  readonly earlyAcknowledgement?: boolean;
}

const ROOT = "/data/.waymark";

/** The longest time that a call takes, and a sync, in milliseconds. */
const CALL = 0.5;
const SYNC = 3;
/** The interval at which a call that does not get through is retried, in milliseconds. */
const RETRY = 500;

/** The calls that need room on the disk. */
const GROWING = ["create", "write", "mkdir", "link"];
/** The calls that a client of a file server repeats if it gets no response, and that then have a different result. */
const UNREPEATABLE = ["link", "unlink", "rename", "mkdir", "rmdir"];

/** A checkpoint's file, as it was when it was given its name. */
interface NamedFile {
  readonly header: RecordHeader;
  readonly bytes: Uint8Array;
}

/** A disk with the files of all runs: that of one machine, or that of a server that each worker's machine can reach. */
export class Files implements Storage {
  readonly isLocal = true;
  readonly unsynced = 0;
  isUp = true;
  isFull = false;
  delay = 0;
  readonly #world: World;
  readonly #checker: Checker;
  readonly #machines: ReadonlySet<Machine>;
  readonly #bugs: FileBugs;
  readonly #random: SeededRandom;
  readonly #named = new Map<string, NamedFile>();
  #disk = new CrashDisk();
  #claims = 0;

  /** @param machines - those of the workers. */
  constructor(
    world: World,
    checker: Checker,
    machines: ReadonlySet<Machine>,
    seed: number,
    bugs: FileBugs,
  ) {
    this.#world = world;
    this.#checker = checker;
    this.#machines = machines;
    this.#random = new SeededRandom(seed, 13);
    this.#bugs = bugs;
  }

  /** The real store, on the simulated disk. */
  open(process: Process): CheckpointStore {
    const durability = this.#bugs.earlyAcknowledgement ? "os" : "fsync";
    const store = new FileStore({ root: ROOT, durability }, this.#mount(process));
    return wrap(store, {
      save: (save) => async (state, options) => {
        const saved = await save(state, options);
        this.#checker.saved(saved);
        return saved;
      },
      claim: (take) => async (runId, options) => {
        const claim = await take(runId, options);
        return claim && this.#watched(claim, runId, process);
      },
      // Warnings of a store are part of the simulation and are not printed.
      load:
        (load) =>
        (runId, at, context = { emit: () => {} }) =>
          load(runId, at, context),
    });
  }

  #watched(claim: Claim, runId: string, process: Process): Claim {
    const checker = this.#checker;
    const epoch = ++this.#claims;
    const holder = checker.holder(runId);
    if (holder?.isAlive && holder !== process && holder.machine === process.machine) {
      const what = `${process.name} claimed ${runId}`;
      checker.fail("one-writer", `${what}, which ${holder.name} has claimed`);
    }
    this.#world.note(process, `has claimed ${runId}`);
    checker.claimed(runId, process, epoch);
    const release = (): Promise<void> => {
      checker.released(runId, epoch);
      return claim.release();
    };
    return { ...claim, release };
  }

  cutPower(_by: number, isTorn: boolean): void {
    const random = this.#random;
    this.#disk = this.#disk.afterPowerCut((options) => {
      if (options === 2) return random.between(0, 2);
      return isTorn ? random.between(1, 3) : random.pick(0, 3);
    });
    for (const machine of this.#machines) machine.restart();
  }

  corrupt(by: number): string | undefined {
    // Of two files of one step, the store may be about to remove the older.
    const runs = this.runs().filter(({ runId }) => {
      const steps = this.#whole(runId).map(([, { header }]) => header.step);
      return steps.some((step) => step < (steps[0] ?? 0));
    });
    const runId = runs[by % runs.length]?.runId;
    const [newest] = runId === undefined ? [] : this.#whole(runId);
    if (newest === undefined) return undefined;
    this.#disk.tamper(newest[0], (bytes) => {
      const damaged = Uint8Array.from(bytes);
      const at = Math.floor((bytes.length * (by + 1)) / 5);
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      return damaged;
    });
    return runId;
  }

  newestWhole(runId: string): RecordHeader | undefined {
    return this.#whole(runId)[0]?.[1].header;
  }

  /** The undamaged files of a run, newest first. */
  #whole(runId: string): [path: string, NamedFile][] {
    const own = [...this.#named].filter(([path, { header, bytes }]) => {
      return header.runId === runId && isSame(this.#file(path)?.bytes, bytes);
    });
    return own.sort(([, a], [, b]) => b.header.sequence - a.header.sequence);
  }

  runs(): RecordHeader[] {
    const newest = new Map<string, RecordHeader>();
    for (const [path, { header: known }] of this.#named) {
      const { runId, sequence } = known;
      const header = headerOf(this.#file(path)?.bytes ?? new Uint8Array());
      if (header?.runId !== runId || header.sequence !== sequence) continue;
      if (sequence > (newest.get(runId)?.sequence ?? 0)) newest.set(runId, header);
    }
    return [...newest.values()];
  }

  /** The file system as a process sees it: its calls take time, and some fail. */
  #mount(process: Process): FileSystem {
    const gate: Gate = (call) => {
      if (this.isFull && GROWING.includes(call)) throw systemError("ENOSPC");
    };
    const disk = this.#disk.mountAs(process, gate);
    return new Proxy(disk, {
      get: (target, key) => {
        const isLink = key === "link" && this.#bugs.noFence === true;
        const member: unknown = Reflect.get(target, isLink ? "rename" : key);
        if (typeof member !== "function") return member;
        return (...args: readonly unknown[]): Promise<unknown> => {
          const action = (): Promise<unknown> => Reflect.apply(member, target, args);
          return this.#call(process, String(key), args, action);
        };
      },
    });
  }

  async #call(
    process: Process,
    call: string,
    args: readonly unknown[],
    action: () => Promise<unknown>,
  ): Promise<unknown> {
    // The node of a dead process may still be doing real work.
    if (!process.isAlive) return new Promise(() => {});
    this.#world.note(process, `calls ${call} ${args.filter((arg) => typeof arg === "string")}`);
    // It takes effect at the beginning of its duration, or at the end.
    const isLate = process.random.chance(0.5);
    if (isLate) await this.#takeTime(process, call);
    const isRemote = this.#machines.size > 1;
    const perform = (): Promise<unknown> => this.#perform(process, call, args.at(-1), action);
    let outcome = perform();
    if (isRemote && process.callsToDouble > 0 && UNREPEATABLE.includes(call)) {
      process.callsToDouble--;
      outcome = outcome.then(perform);
    }
    const ended = outcome.catch(() => {});
    await ended;
    if (!isLate) await this.#takeTime(process, call);
    if (isRemote && process.answersToLose > 0) {
      process.answersToLose--;
      throw systemError("EIO");
    }
    return outcome;
  }

  /** Performs a call, and notes the checkpoint that it gives a name to. */
  async #perform(
    process: Process,
    call: string,
    to: unknown,
    action: () => Promise<unknown>,
  ): Promise<unknown> {
    if ((call !== "link" && call !== "rename") || typeof to !== "string") return action();
    const before = this.#file(to);
    const result = await action();
    const file = this.#file(to);
    if (file !== undefined && isCheckpoint(to)) this.#onNamed(to, file, before, process);
    return result;
  }

  async #takeTime(process: Process, call: string): Promise<void> {
    const { random, delay } = process;
    const most = call === "sync" ? SYNC : CALL;
    const ms = random.next() * most + random.next() * (delay + this.delay);
    const wait = (time: number): Promise<void> =>
      new Promise((resolve) => this.#world.after(time, process, resolve));
    await wait(ms);
    // A cut affects only a file server; a local disk stays reachable.
    while (process.isCut && this.#machines.size > 1) await wait(RETRY);
  }

  #onNamed(path: string, file: FileNode, before: FileNode | undefined, process: Process): void {
    const { bytes } = file;
    const header = headerOf(bytes);
    if (header === undefined) return;
    const { runId, sequence, step, status } = header;
    this.#world.note(process, `wrote ${runId} ${sequence} step ${step} ${status}`);
    if (before !== undefined && before.bytes.length > 0 && before !== file) {
      const what = `${process.name} wrote checkpoint ${sequence} of ${runId}`;
      this.#checker.fail("one-writer", `${what} in the place of another`);
    }
    this.#named.set(path, { header, bytes });
    // One that lost, to a checkpoint that others have built on and removed, stays where it is.
    if (this.newestWhole(runId) !== header) return;
    const holder = this.#checker.holder(runId);
    const isClaimed = holder?.isAlive === true && holder.machine === process.machine;
    this.#checker.written(header, process, null, isClaimed);
  }

  #file(path: string): FileNode | undefined {
    try {
      const node = this.#disk.find(path);
      return node.kind === "file" ? node : undefined;
    } catch {
      return undefined;
    }
  }
}

function isCheckpoint(path: string): boolean {
  return sequenceOf(basename(path)) !== undefined && basename(dirname(path)) !== QUARANTINE;
}

function isSame(a: Uint8Array | undefined, b: Uint8Array): boolean {
  return a !== undefined && Buffer.compare(a, b) === 0;
}
