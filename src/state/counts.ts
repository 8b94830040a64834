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

/** The counts of several nodes, by name, in the order in which they first completed. */
type Sums = ReadonlyMap<string, NodeCount>;

/** The fewest steps that are summed up at once. */
const MIN_STEPS = 256;

/**
 * What each node did over a whole run. Each completed node makes a new one, which only notes the step: steps are summed
 * up when somebody reads them, and after at least as many as there are nodes. So a step costs the same whatever the
 * number of nodes and steps, and old Counts don't outlive their States.
 */
export class Counts {
  readonly #node: string;
  readonly #attempts: number;
  readonly #durationMs: number;
  /** How many more steps may follow before they are summed up. */
  readonly #room: number;
  /** How often its node has completed, once somebody has asked; otherwise 0. */
  #visits = 0;
  /** The counts before this step, or the sums that include it. */
  #from: Counts | Sums;

  private constructor(
    node: string,
    attempts: number,
    durationMs: number,
    room: number,
    from: Counts | Sums,
  ) {
    this.#node = node;
    this.#attempts = attempts;
    this.#durationMs = durationMs;
    this.#room = room;
    this.#from = from;
  }

  /** @param nodes - each node at most once. */
  static of(nodes: readonly NodeCount[]): Counts {
    const completed = nodes.filter(([, visits]) => visits > 0);
    return Counts.#ofSums(new Map(completed.map((count) => [count[0], count])));
  }

  static #ofSums(sums: Sums): Counts {
    return new Counts("", 0, 0, Math.max(MIN_STEPS, sums.size), sums);
  }

  /**
   * These counts and one more completion of a node.
   *
   * @param attempts - how many it took; 0, like `durationMs`, if only visits are counted.
   */
  with(node: string, attempts: number, durationMs: number): Counts {
    const next = new Counts(node, attempts, durationMs, this.#room - 1, this);
    return next.#room > 0 ? next : Counts.#ofSums(next.#sums());
  }

  /** How often a node has completed. Whoever asks at each step of a cycle looks back one round at the most. */
  visitsOf(node: string): number {
    let visits = 0;
    let newest: Counts | undefined;
    let at: Counts = this;
    for (let from = at.#from; from instanceof Counts; from = at.#from) {
      if (at.#node === node) {
        if (at.#visits > 0) break;
        newest ??= at;
        visits++;
      }
      at = from;
    }
    visits += at.#visits > 0 && at.#node === node ? at.#visits : (at.#sums().get(node)?.[1] ?? 0);
    if (newest !== undefined) newest.#visits = visits;
    return visits;
  }

  /** How often each node completed. */
  visits(): Visits {
    const visits: Record<string, number> = {};
    for (const [node, count] of this.#sums().values()) setKey(visits, node, count);
    return Object.freeze(visits);
  }

  /** How many attempts each node took, and how long it worked. */
  work(): Readonly<Record<string, NodeWork>> {
    const work: Record<string, NodeWork> = {};
    for (const [node, , attempts, durationMs] of this.#sums().values()) {
      setKey(work, node, Object.freeze({ attempts, durationMs }));
    }
    return Object.freeze(work);
  }

  toJSON(): CountsJSON {
    const visits = this.visits();
    for (const [, , attempts] of this.#sums().values()) {
      if (attempts > 0) return { visits, work: this.work() };
    }
    return { visits };
  }

  /** The sums of all steps up to this one. */
  #sums(): Sums {
    const steps: Counts[] = [];
    let from: Counts | Sums = this;
    while (from instanceof Counts) {
      if (from.#from instanceof Counts) steps.push(from);
      from = from.#from;
    }
    if (steps.length === 0) return from;
    const sums = new Map<string, [string, number, number, number]>();
    for (const [node, ...counted] of from.values()) sums.set(node, [node, ...counted]);
    let sum: [string, number, number, number] | undefined;
    for (const step of steps.reverse()) {
      const node = step.#node;
      if (sum === undefined || sum[0] !== node) {
        sum = sums.get(node) ?? [node, 0, 0, 0];
        sums.set(node, sum);
      }
      sum[1] += 1;
      sum[2] += step.#attempts;
      sum[3] += step.#durationMs;
    }
    this.#from = sums;
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
