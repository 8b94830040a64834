import { useClock } from "../../clock.js";
import { useChance } from "../../random.js";
import type { Processes } from "../../stores/process.js";
import { SeededRandom } from "./seeded-random.js";

/** When a simulation begins, in milliseconds since 1970. */
const BEGINNING = Date.UTC(2030, 0, 1);

/** The longest time that the simulation waits for real work, in milliseconds. */
const REAL_WORK = 10_000;

interface ScheduledAction {
  at: number;
  /** The process it happens to; none on the other side of the network. */
  readonly process: Process | undefined;
  readonly action: () => void;
  readonly background: boolean;
  cancelled: boolean;
}

/** A machine, on which process numbers are valid from one start to the next. */
export class Machine {
  /** Whether a process is identified by its number alone: a fault that a test plants. */
  readonly numbersOnly: boolean;
  readonly processes: Process[] = [];
  readonly #number: number;
  #starts = 0;

  constructor(number: number, numbersOnly = false) {
    this.#number = number;
    this.numbersOnly = numbersOnly;
  }

  /** Eight hexadecimal digits that identify this start of the machine. */
  get place(): string {
    return (this.#number * 2 ** 16 + this.#starts).toString(16).padStart(8, "0");
  }

  restart(): void {
    this.#starts++;
    this.processes.length = 0;
  }
}

/** One life of a worker: what it awaits comes from the simulation, so a dead one never continues. */
export class Process implements Processes {
  /** `w2.1`: the first life of worker 2; `c2.1`: the client beside it. */
  readonly name: string;
  readonly worker: number;
  readonly life: number;
  readonly random: SeededRandom;
  isAlive = true;
  isStopped = false;
  /** The offset of its wall clock, in milliseconds. */
  skew = 0;
  /** Whether nothing gets through between it and the servers. */
  isCut = false;
  /** The longest additional delay of its messages, in milliseconds. */
  delay = 0;
  /** How many of its next calls lose their answer, or arrive twice. */
  answersToLose = 0;
  callsToDouble = 0;
  /** The node that it is running. */
  visit: { readonly runId: string; readonly node: string; readonly step: number } | undefined;
  /** How many simulated events it waits for. */
  expects = 0;
  /** What arrived while it was stopped. */
  readonly held: ScheduledAction[] = [];
  readonly machine: Machine;
  /** Its number on the machine: that of its former lives, as in a container. */
  readonly #number: number;
  #ids = 0;
  #owners = 0;

  /** @param kind - workers and the clients beside them have different names and different random numbers. */
  constructor(
    worker: number,
    life: number,
    seed: number,
    kind: "w" | "c" = "w",
    machine = new Machine(worker),
  ) {
    this.worker = worker;
    this.life = life;
    this.name = `${kind}${worker}.${life}`;
    this.random = new SeededRandom(seed, worker, life, ...(kind === "c" ? [1] : []));
    this.machine = machine;
    this.#number = worker * 2 + (kind === "c" ? 2 : 1);
    machine.processes.push(this);
  }

  newId(): string {
    return `${this.name}-${++this.#ids}`;
  }

  get host(): string {
    return this.name;
  }

  get pid(): number {
    return this.life;
  }

  newOwner(): string {
    const count = (++this.#owners).toString(16).padStart(8, "0");
    return `${this.#number}-${this.#number}-${this.life}-${this.machine.place}-${count}`;
  }

  isLiving(owner: string): boolean | undefined {
    const [number, , life, place] = owner.split("-");
    const { machine } = this;
    if (place !== machine.place) return undefined;
    return machine.processes.some((one) => {
      if (!one.isAlive || one.#number !== Number(number)) return false;
      return machine.numbersOnly || one.life === Number(life);
    });
  }
}

/** The clock of a simulation, and the order in which everything happens in it: one thing at a time. */
export class World {
  /** Milliseconds since the beginning, by the clock of the servers. */
  time = 0;
  /** How many things have happened. */
  steps = 0;
  /** What has happened, line by line. */
  readonly trace: string[] | undefined;
  /** The running process: it does everything that happens until the next step. */
  current: Process | undefined;
  readonly #scheduled: ScheduledAction[] = [];
  readonly #leasesByWallClock: boolean;

  constructor(isTraced: boolean, leasesByWallClock = false) {
    this.trace = isTraced ? [] : undefined;
    this.#leasesByWallClock = leasesByWallClock;
  }

  /** Installs the clock and the random numbers of this world; returns a function that removes them. */
  enter(): () => void {
    const now = (): number => Math.floor(BEGINNING + this.time + (this.current?.skew ?? 0));
    const restoreClock = useClock({
      now,
      // As in Node, no timer is shorter than a millisecond.
      after: (ms, callback) => this.after(Math.max(ms, 1), this.current, callback),
      monotonic: this.#leasesByWallClock ? now : () => this.time,
      background: (ms, callback) => this.after(Math.max(ms, 1), this.current, callback, true),
    });
    const restoreChance = useChance({
      random: () => this.current?.random.next() ?? 0.5,
      newId: () => this.current?.newId() ?? "nobody",
    });
    // Stacks differ between Node versions, and are saved with failed runs.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    return () => {
      Error.stackTraceLimit = stackTraceLimit;
      restoreChance();
      restoreClock();
    };
  }

  /** Schedules an action of a process, unless it dies first; while it is stopped, the action waits. */
  after(
    ms: number,
    process: Process | undefined,
    action: () => void,
    background = false,
  ): () => void {
    const scheduled = { at: this.time + ms, process, action, background, cancelled: false };
    if (process !== undefined && !background) process.expects++;
    this.#insert(scheduled);
    return () => {
      if (scheduled.cancelled) return;
      scheduled.cancelled = true;
      if (process !== undefined && !background) process.expects--;
    };
  }

  /** Makes the current process wait. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, this.current, resolve));
  }

  note(who: Process | undefined, what: string): void {
    this.trace?.push(`${this.time.toFixed(3)} ${who?.name ?? "server"} ${what}`);
  }

  kill(process: Process): void {
    process.isAlive = false;
  }

  stop(process: Process): void {
    process.isStopped = true;
  }

  /** Lets a stopped process continue: what it missed happens now, in order or in reverse. */
  wake(process: Process): void {
    process.isStopped = false;
    const missed = process.held.splice(0);
    if (process.random.chance(0.5)) missed.reverse();
    for (const scheduled of missed) {
      scheduled.at = this.time;
      this.#insert(scheduled);
    }
  }

  /** Lets the next thing happen, and all that follows from it at once; `false` if nothing will ever happen again. */
  async step(): Promise<boolean> {
    for (;;) {
      const next = this.#scheduled.shift();
      if (next === undefined) return false;
      const { process, action, background } = next;
      if (next.cancelled || process?.isAlive === false) continue;
      this.time = Math.max(this.time, next.at);
      if (process?.isStopped) {
        process.held.push(next);
        continue;
      }
      // It can no longer be cancelled.
      next.cancelled = true;
      if (process !== undefined && !background) process.expects--;
      this.steps++;
      this.current = process;
      action();
      await settle();
      if (process !== undefined && process.expects === 0) await this.#realWork(process);
      this.current = undefined;
      return true;
    }
  }

  /** A process that waits for no simulated event is in a node that does real work. */
  async #realWork(process: Process): Promise<void> {
    const end = performance.now() + REAL_WORK;
    for (let looks = 0; process.expects === 0 && process.isAlive; looks++) {
      if (performance.now() > end) return;
      await (looks < 100 ? settle() : new Promise((resolve) => setTimeout(resolve, 1)));
    }
  }

  #insert(action: ScheduledAction): void {
    let index = this.#scheduled.length;
    while (index > 0 && (this.#scheduled[index - 1]?.at ?? 0) > action.at) index--;
    this.#scheduled.splice(index, 0, action);
  }
}

/** Runs everything that needs no more time. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
