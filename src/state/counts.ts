import { setKey } from "./shape.js";

/** How often each node completed, by node name. */
export type Visits = Readonly<Record<string, number>>;

/** How many attempts each node took, and how long it worked, by node name. */
export type WorkCounts = Readonly<
  Record<string, { readonly attempts: number; readonly durationMs: number }>
>;

/** The counts of one node. */
export type NodeCount = readonly [
  node: string,
  visits: number,
  attempts: number,
  durationMs: number,
];

/** How many numbers a node has in the sums, and a step in the log. */
const WIDTH = 3;

/** The fewest steps that share a log. */
const MIN_STEPS = 256;

/**
 * What each node did over a whole run. Each completed node makes a new one, at a cost that depends neither on the
 * number of nodes nor of steps, because those of consecutive steps share a {@link CountLog}.
 */
export class Counts {
  readonly #log: CountLog;
  /** How much of the log belongs to it. */
  readonly #length: number;

  private constructor(log: CountLog) {
    this.#log = log;
    this.#length = log.length;
  }

  /** @param nodes - each node at most once. */
  static of(nodes: readonly NodeCount[]): Counts {
    return new Counts(CountLog.of(nodes));
  }

  /**
   * These counts and one more completion of a node.
   *
   * @param attempts - how many it took; 0, like `durationMs`, if only visits are counted.
   */
  with(node: string, attempts: number, durationMs: number): Counts {
    const isOpen = this.#log.length === this.#length && this.#log.isOpen;
    const log = isOpen ? this.#log : this.#log.next(this.#length);
    log.add(node, attempts, durationMs);
    return new Counts(log);
  }

  /** How often a node has completed. */
  visitsOf(node: string): number {
    return this.#log.visitsOf(node, this.#length);
  }

  /** How often each node completed. */
  visits(): Visits {
    const visits: Record<string, number> = {};
    for (const [node, count] of this.#log.nodes(this.#length)) setKey(visits, node, count);
    return Object.freeze(visits);
  }

  /** How many attempts each node took, and how long it worked. */
  work(): WorkCounts {
    const work: Record<string, { attempts: number; durationMs: number }> = {};
    for (const [node, , attempts, durationMs] of this.#log.nodes(this.#length)) {
      setKey(work, node, Object.freeze({ attempts, durationMs }));
    }
    return Object.freeze(work);
  }

  /** Whether attempts and durations were counted. */
  get hasWork(): boolean {
    return this.#log.nodes(this.#length).some(([, , attempts]) => attempts > 0);
  }
}

/**
 * The sums after the newest of some steps, and these steps, which an older State subtracts. After as many steps as
 * there are nodes the next log begins with a copy of the sums: the copy costs each step the same, and a State keeps
 * no more than one log alive.
 */
class CountLog {
  /** The place of each node in the sums. Shared with the next log, which may know more nodes. */
  readonly #places: Map<string, number>;
  readonly #sums: number[];
  /** Append-only. */
  readonly #steps: number[] = [];
  /** Whether the newest step belongs to the next log. */
  #continued = false;
  /** How long it may become. */
  readonly #most: number;

  private constructor(places: Map<string, number>, sums: number[]) {
    this.#places = places;
    this.#sums = sums;
    this.#most = WIDTH * Math.max(MIN_STEPS, places.size);
  }

  static of(nodes: readonly NodeCount[]): CountLog {
    const places = new Map(nodes.map(([node], index) => [node, WIDTH * index]));
    const log = new CountLog(
      places,
      nodes.flatMap(([, ...sums]) => sums),
    );
    // All runs of a process begin with the same empty log.
    log.#continued = nodes.length === 0;
    return log;
  }

  get length(): number {
    return this.#steps.length;
  }

  /** Whether steps may be added. */
  get isOpen(): boolean {
    return this.#steps.length < this.#most && !this.#continued;
  }

  add(node: string, attempts: number, durationMs: number): void {
    const sums = this.#sums;
    let at = this.#places.get(node);
    if (at === undefined) {
      at = WIDTH * this.#places.size;
      this.#places.set(node, at);
      sums.push(0, 0, 0);
    }
    sums[at] = (sums[at] ?? 0) + 1;
    sums[at + 1] = (sums[at + 1] ?? 0) + attempts;
    sums[at + 2] = (sums[at + 2] ?? 0) + durationMs;
    this.#steps.push(at, attempts, durationMs);
  }

  /** A log that begins where this one is of this length. */
  next(length: number): CountLog {
    if (length === this.#steps.length && !this.#continued) {
      this.#continued = true;
      return new CountLog(this.#places, this.#sums.slice());
    }
    const log = CountLog.of(this.nodes(length));
    log.#continued = false;
    return log;
  }

  visitsOf(node: string, length: number): number {
    const at = this.#places.get(node) ?? -1;
    let visits = this.#sums[at] ?? 0;
    for (let step = length; step < this.#steps.length; step += WIDTH) {
      if (this.#steps[step] === at) visits -= 1;
    }
    return visits;
  }

  /** The counts of each node that had completed when the log was of this length. */
  nodes(length: number): NodeCount[] {
    const sums = length === this.#steps.length ? this.#sums : this.#sumsAt(length);
    const nodes: NodeCount[] = [];
    for (const [node, at] of this.#places) {
      const visits = sums[at] ?? 0;
      if (visits > 0) nodes.push([node, visits, sums[at + 1] ?? 0, sums[at + 2] ?? 0]);
    }
    return nodes;
  }

  #sumsAt(length: number): readonly number[] {
    const sums = this.#sums.slice();
    for (let step = length; step < this.#steps.length; step += WIDTH) {
      const at = this.#steps[step] ?? 0;
      sums[at] = (sums[at] ?? 0) - 1;
      sums[at + 1] = (sums[at + 1] ?? 0) - (this.#steps[step + 1] ?? 0);
      sums[at + 2] = (sums[at + 2] ?? 0) - (this.#steps[step + 2] ?? 0);
    }
    return sums;
  }
}

/** Nothing counted yet. */
export const noCounts: Counts = Counts.of([]);
