import { SeededRandom } from "./seeded-random.js";

/**
 * What can go wrong:
 *
 * - `kill`: a worker dies; its successor starts `for` ms later;
 * - `stop`: a worker freezes for `for` ms, as after SIGSTOP or while a laptop sleeps;
 * - `cut`: nothing gets through between a worker and the servers for `for` ms; a call to a file server waits;
 * - `delay`: messages of a worker, or of all, take up to `by` ms more and overtake each other, for `for` ms;
 * - `lose-answer`: the next call of a worker is served, and its answer is lost;
 * - `double-call`: the next call of a worker arrives twice;
 * - `skew`: the wall clock of a worker is set forward or back by `by` ms;
 * - `power-cut`: database and queue lose the last `by` writes that they have not synced, and are away for `for` ms;
 *   a disk with files loses some or all that was not synced, and the workers die;
 * - `torn-write`: the same, and the newest write that is left, or every file that was not synced, is torn;
 * - `full-disk`: the database, or the disk, refuses writes for `for` ms;
 * - `corrupt`: the newest checkpoint of a run is damaged on the disk;
 * - `lost-queue`: the queue loses all its jobs.
 */
export type FaultKind =
  | "kill"
  | "stop"
  | "cut"
  | "delay"
  | "lose-answer"
  | "double-call"
  | "skew"
  | "power-cut"
  | "torn-write"
  | "full-disk"
  | "corrupt"
  | "lost-queue";

export const faultKinds: readonly FaultKind[] = [
  "kill",
  "stop",
  "cut",
  "delay",
  "lose-answer",
  "double-call",
  "skew",
  "power-cut",
  "torn-write",
  "full-disk",
  "corrupt",
  "lost-queue",
];

/** One thing that goes wrong. */
export interface Fault {
  /** When: the number of simulation steps before it. */
  readonly at: number;
  /** What. */
  readonly kind: FaultKind;
  /** The worker it happens to, from 0; none for a fault of the network or the database. */
  readonly worker?: number;
  /** For how many milliseconds. */
  readonly for?: number;
  /** By how much; see {@link FaultKind}. */
  readonly by?: number;
}

/**
 * Where runs are kept:
 *
 * - `database`: a database that workers reach over a network;
 * - `file`: a `FileStore` on the disk of the one machine that all workers share;
 * - `shared-file`: a `FileStore` on a file server, and each worker on a machine of its own.
 */
export type SimulatedStorage = "database" | "file" | "shared-file";

export const storageKinds: readonly SimulatedStorage[] = ["database", "file", "shared-file"];

/** Everything that determines one simulation. */
export interface SimulationScript {
  /** Decides how long each message takes. */
  readonly seed: number;
  /** How many workers there are. */
  readonly workers: number;
  /** How many runs they work on. */
  readonly runs: number;
  /** The most milliseconds that a message takes. */
  readonly latency: number;
  /** Whether the runs are submitted to a queue that the workers take them from. */
  readonly queue: boolean;
  /** Where the runs are kept. */
  readonly store: SimulatedStorage;
  /** What goes wrong, in order. */
  readonly faults: readonly Fault[];
}

/** The most faults of a script, and the most steps between two of them. */
const MOST_FAULTS = 8;
const APART = 60;

/** The most kinds of faults in one script: few kinds coincide more often. */
const MOST_KINDS = 4;

export function scriptOf(
  seed: number,
  limits: Pick<SimulationScript, "workers" | "runs"> & {
    readonly queue?: boolean | undefined;
    readonly store?: SimulatedStorage | undefined;
  },
  kinds: readonly FaultKind[],
): SimulationScript {
  const random = new SeededRandom(seed, 7);
  const workers = random.between(1, limits.workers + 1);
  const runs = random.between(1, limits.runs + 1);
  const latency = random.pick(4, 4, 3000);
  const [first, ...others] = someOf(random, kinds, random.between(1, MOST_KINDS + 1));
  const count = first === undefined ? 0 : random.between(1, MOST_FAULTS + 1);
  const faults: Fault[] = [];
  let at = 0;
  for (let index = 0; index < count && first !== undefined; index++) {
    at += random.between(0, random.pick(5, APART, APART));
    faults.push(faultOf(random, at, random.pick(first, ...others), workers));
  }
  const queue = limits.queue ?? random.chance(0.5);
  const drawn = random.pick("database", "database", ...storageKinds);
  const store = limits.store ?? drawn;
  return { seed, workers, runs, latency, queue, store, faults };
}

function someOf<T>(random: SeededRandom, all: readonly T[], count: number): T[] {
  const left = [...all];
  const some: T[] = [];
  while (some.length < count && left.length > 0) {
    some.push(...left.splice(random.between(0, left.length), 1));
  }
  return some;
}

function faultOf(random: SeededRandom, at: number, kind: FaultKind, workers: number): Fault {
  const worker = random.between(0, workers);
  // Shorter than a message, shorter than a lease, longer than one.
  const span = random.between(1, random.pick(20, 2000, 40_000, 100_000));
  switch (kind) {
    case "kill":
    case "stop":
    case "cut":
      return { at, kind, worker, for: span };
    case "delay":
      return {
        ...{ at, kind, for: span, by: random.between(1, random.pick(20, 100_000)) },
        // Of one worker, or of all.
        ...(random.chance(0.5) && { worker }),
      };
    case "lose-answer":
    case "double-call":
      return { at, kind, worker };
    case "skew":
      return { at, kind, worker, by: random.between(-200_000, 200_000) };
    case "power-cut":
    case "torn-write":
      return { at, kind, for: random.between(1, 2000), by: random.between(0, 4) };
    case "full-disk":
      return { at, kind, for: random.between(1, 2000) };
    case "corrupt":
      return { at, kind, by: random.between(0, 4) };
    case "lost-queue":
      return { at, kind };
  }
}
