import { count, fieldsOf, type Kind } from "./kinds.js";
import { setKey } from "./shape.js";

/** How often each node completed, by node name. */
export type Visits = Readonly<Record<string, number>>;

/** What a node did over a whole run. */
export interface NodeWork {
  /** How many attempts it took. */
  readonly attempts: number;
  /** How long it worked, in milliseconds. */
  readonly durationMs: number;
}

/** The counts of one node. */
export type NodeCount = readonly [
  node: string,
  visits: number,
  attempts: number,
  durationMs: number,
];

/** How many numbers a node has in the sums. */
const WIDTH = 3;

/** The places of no steps. */
const noPlaces = new Int32Array(0);

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

  /** The same counts, which find a node fastest if it is given with its index among these. */
  arrangedBy(names: readonly string[]): Counts {
    return new Counts(CountLog.of(this.#log.nodes(this.#length), names));
  }

  /**
   * These counts and one more completion of a node.
   *
   * @param attempts - how many it took; 0, like `durationMs`, if only visits are counted.
   * @param index - where it is likely to be found.
   */
  with(node: string, attempts: number, durationMs: number, index = -1): Counts {
    const isOpen = this.#log.length === this.#length && this.#log.isOpen;
    const log = isOpen ? this.#log : this.#log.next(this.#length);
    log.add(node, attempts, durationMs, index);
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
  work(): Readonly<Record<string, NodeWork>> {
    const work: Record<string, NodeWork> = {};
    for (const [node, , attempts, durationMs] of this.#log.nodes(this.#length)) {
      setKey(work, node, Object.freeze({ attempts, durationMs }));
    }
    return Object.freeze(work);
  }

  /** Whether attempts and durations were counted. */
  get hasWork(): boolean {
    return this.#log.nodes(this.#length).some(([, , attempts]) => attempts > 0);
  }

  toJSON(): CountsJSON {
    const visits: Record<string, number> = {};
    const work: Record<string, NodeWork> = {};
    let hasWork = false;
    for (const [node, count, attempts, durationMs] of this.#log.nodes(this.#length)) {
      setKey(visits, node, count);
      setKey(work, node, { attempts, durationMs });
      if (attempts > 0) hasWork = true;
    }
    return hasWork ? { visits, work } : { visits };
  }
}

/**
 * The sums after the newest of some steps, and these steps, which an older State subtracts. After as many steps as
 * there are nodes the next log begins with a copy of the sums: the copy costs each step the same, and a State keeps
 * no more than one log alive.
 */
class CountLog {
  /** The nodes, by their place in the sums. Shared with the next log, which may know more nodes. */
  readonly #names: string[];
  readonly #sums: number[];
  /** The place of the node of each step. */
  #steps = noPlaces;
  /** How many steps it has room for. */
  readonly #room: number;
  /** The attempts and the duration of each step, once one has some. */
  #work: Float64Array | undefined;
  #length = 0;
  /** Whether the newest step belongs to the next log. */
  #continued = false;

  /** How many of the names come first, whether they have counts or not. */
  readonly #arranged: number;

  private constructor(names: string[], sums: number[], arranged: number) {
    this.#names = names;
    this.#sums = sums;
    this.#arranged = arranged;
    this.#room = Math.max(MIN_STEPS, names.length);
  }

  /** @param names - the nodes that come first, whether they have counts or not. */
  static of(nodes: readonly NodeCount[], names: readonly string[] = []): CountLog {
    const counted = new Map(nodes.map(([node, ...sums]) => [node, sums]));
    const all = [...new Set([...names, ...counted.keys()])];
    const log = new CountLog(
      all,
      all.flatMap((name) => counted.get(name) ?? [0, 0, 0]),
      names.length,
    );
    // All runs of a process begin with the same empty log.
    log.#continued = all.length === 0;
    return log;
  }

  get length(): number {
    return this.#length;
  }

  /** Whether steps may be added. */
  get isOpen(): boolean {
    return this.#length < this.#room && !this.#continued;
  }

  add(node: string, attempts: number, durationMs: number, index: number): void {
    const place = this.#names[index] === node ? index : this.#place(node);
    const at = WIDTH * place;
    const sums = this.#sums;
    sums[at] = (sums[at] ?? 0) + 1;
    // A State that is only read needs none.
    if (this.#length === 0) this.#steps = new Int32Array(this.#room);
    this.#steps[this.#length] = place;
    if (attempts !== 0 || durationMs !== 0) this.#addWork(at, attempts, durationMs);
    this.#length++;
  }

  #addWork(at: number, attempts: number, durationMs: number): void {
    const sums = this.#sums;
    sums[at + 1] = (sums[at + 1] ?? 0) + attempts;
    sums[at + 2] = (sums[at + 2] ?? 0) + durationMs;
    this.#work ??= new Float64Array(2 * this.#room);
    this.#work[2 * this.#length] = attempts;
    this.#work[2 * this.#length + 1] = durationMs;
  }

  #place(node: string): number {
    const known = this.#names.indexOf(node);
    if (known >= 0) return known;
    return this.#names.push(node) - 1;
  }

  /** A log that begins where this one is of this length. */
  next(length: number): CountLog {
    if (length === this.#length && !this.#continued) {
      this.#continued = true;
      return new CountLog(this.#names, this.#sums.slice(), this.#arranged);
    }
    const log = CountLog.of(this.nodes(length), this.#names.slice(0, this.#arranged));
    log.#continued = false;
    return log;
  }

  visitsOf(node: string, length: number): number {
    const place = this.#names.indexOf(node);
    let visits = this.#sums[WIDTH * place] ?? 0;
    for (let step = length; step < this.#length; step++) if (this.#steps[step] === place) visits--;
    return visits;
  }

  /** The counts of each node that had completed when the log was of this length. */
  nodes(length: number): NodeCount[] {
    const sums = length === this.#length ? this.#sums : this.#sumsAt(length);
    const nodes: NodeCount[] = [];
    let at = 0;
    for (const node of this.#names) {
      const visits = sums[at] ?? 0;
      if (visits > 0) nodes.push([node, visits, sums[at + 1] ?? 0, sums[at + 2] ?? 0]);
      at += WIDTH;
    }
    return nodes;
  }

  #sumsAt(length: number): readonly number[] {
    const sums = this.#sums.slice();
    for (let step = length; step < this.#length; step++) {
      const at = WIDTH * (this.#steps[step] ?? 0);
      sums[at] = (sums[at] ?? 0) - 1;
      sums[at + 1] = (sums[at + 1] ?? 0) - (this.#work?.[2 * step] ?? 0);
      sums[at + 2] = (sums[at + 2] ?? 0) - (this.#work?.[2 * step + 1] ?? 0);
    }
    return sums;
  }
}

/** Nothing counted yet. */
export const noCounts: Counts = Counts.of([]);

/** Counts as JSON: two fields, of which the second is absent if only visits were counted. */
export interface CountsJSON {
  /** See {@link State.visits}. */
  readonly visits: Visits;
  /** How many attempts each node took and how long it worked, by node; see {@link State.totals}. */
  readonly work?: Readonly<Record<string, NodeWork>>;
}

/** Counts in a record. */
export const counts: Kind<Counts, CountsJSON> = {
  isSpread: true,
  userText: { fields: { visits: "fixed", work: "fixed" } },
  read: (json, path) => {
    const fields = fieldsOf(json, path);
    const visits = fieldsOf(fields.visits, `${path}.visits`);
    const work = fields.work === undefined ? {} : fieldsOf(fields.work, `${path}.work`);
    return Counts.of(
      Object.keys(visits).map((node): NodeCount => {
        const completed = count.read(visits[node], `${path}.visits`, node);
        if (!Object.hasOwn(work, node)) return [node, completed, 0, 0];
        const at = `${path}.work.${node}`;
        const { attempts, durationMs } = fieldsOf(work[node], at);
        return [
          node,
          completed,
          count.read(attempts, at, "attempts"),
          count.read(durationMs, at, "durationMs"),
        ];
      }),
    );
  },
  write: (given) => given.toJSON(),
};
