import type { EventMap } from "../../event-map.js";
import type { MaxLoss } from "../config.js";

/** The work between two failures that is assumed at first, in milliseconds. */
const PRIOR_MS = 10 * 60 * 1000;
/** The assumed cost of a save before one was measured, in milliseconds. */
const FIRST_SAVE_MS = 1;
/** The least weight of a new measurement against the earlier ones. */
const WEIGHT = 0.05;

/** The figures that a decision to save is based on. */
export type Decision = NonNullable<EventMap["checkpoint.save"]["adaptive"]>;

/** A node that has completed, and where the run continues. */
interface CompletedNode {
  readonly name: string;
  readonly next: string | undefined;
  readonly durationMs: number;
  /** The cost of the run so far. */
  readonly costUsd: number;
}

/**
 * Decides when a checkpoint is worth its cost. With save cost C and mean time between failures M the best work
 * between two saves is about √(2CM) (Young), more exactly Daly's √(2CM)·[1 + ⅓·√(C/2M) + ⅑·C/2M] − C. Saves happen
 * only between nodes, so a stretch between two saves is shorter or longer than that; a save is due when the next node
 * would, on average, lose more per millisecond than the stretches so far have. M starts from a prior of one failure
 * in ten minutes of work, and is updated with the work the run has done and its recorded crashes.
 */
export class AdaptiveInterval {
  readonly #maxLoss: MaxLoss;
  readonly #saveMs = new Average();
  /** How long the stretches between saves were, as multiples of the best interval. */
  readonly #stretches = new Average(1);
  readonly #all = new Node();
  readonly #byName = new Map<string, Node>();
  #next = this.#all;
  #workedMs: number;
  #crashes: number;
  #unsavedMs = 0;
  #costUsd: number;
  #savedUsd: number;
  #rule: Decision["rule"];

  /**
   * @param workedMs - how long the nodes of the run have worked so far.
   * @param crashes - how often it was resumed after a crash.
   * @param costUsd - its cost so far.
   */
  constructor(maxLoss: MaxLoss, workedMs: number, crashes: number, costUsd: number) {
    this.#maxLoss = maxLoss;
    this.#workedMs = workedMs;
    this.#crashes = crashes;
    this.#costUsd = costUsd;
    this.#savedUsd = costUsd;
  }

  /** The figures that the last decision was based on. */
  get decision(): Decision {
    const saveMs = this.#saveMs.count === 0 ? FIRST_SAVE_MS : this.#saveMs.mean;
    const failureMs = (PRIOR_MS + this.#workedMs) / (1 + this.#crashes);
    const intervalMs = bestInterval(saveMs, failureMs);
    // A stretch of x intervals loses 1 + x², in units of half a save; `rate` is the loss per unit of work so far.
    const { mean, meanSquare } = this.#stretches;
    const rate = (1 + meanSquare) / (2 * mean);
    const { ms } = this.#next;
    const nextLoses = ms.mean === 0 ? 0 : ms.meanSquare / (2 * ms.mean);
    const dueMs = Math.max(0, intervalMs * rate - nextLoses);
    const unsavedUsd = this.#unsavedUsd;
    return {
      ...{ unsavedMs: this.#unsavedMs, unsavedUsd, intervalMs, dueMs, saveMs, failureMs },
      ...(this.#rule !== undefined && { rule: this.#rule }),
    };
  }

  get #unsavedUsd(): number {
    return Math.max(0, this.#costUsd - this.#savedUsd);
  }

  /** Whether to save, now that a node has completed. */
  isDue({ name, next, durationMs, costUsd }: CompletedNode): boolean {
    const nodeUsd = Math.max(0, costUsd - this.#costUsd);
    this.#workedMs += durationMs;
    this.#unsavedMs += durationMs;
    this.#costUsd = costUsd;
    for (const node of [this.#all, this.#node(name)]) {
      node.ms.add(durationMs);
      node.usd.add(nodeUsd);
    }
    this.#next = this.#byName.get(next ?? "") ?? this.#all;
    this.#rule = this.#ruleThatAsks();
    return this.#rule !== undefined;
  }

  #ruleThatAsks(): Decision["rule"] {
    const { ms = Number.POSITIVE_INFINITY, costUsd = Number.POSITIVE_INFINITY } = this.#maxLoss;
    // Saves if the next node would exceed the limit: its work is not saved until it is done either.
    if (this.#unsavedMs + this.#next.ms.mean > ms) return "maxLoss.ms";
    if (this.#unsavedUsd + this.#next.usd.mean > costUsd) return "maxLoss.costUsd";
    const isDue = this.#unsavedMs > 0 && this.#unsavedMs >= this.decision.dueMs;
    return isDue ? "interval" : undefined;
  }

  #node(name: string): Node {
    const known = this.#byName.get(name);
    if (known !== undefined) return known;
    const node = new Node();
    this.#byName.set(name, node);
    return node;
  }

  /** Notes that a save of all work so far has begun; returns the figures behind it. */
  begin(): Decision {
    const { decision } = this;
    // Stretches that something else ended say nothing about the rule.
    if (this.#rule === "interval") this.#stretches.add(this.#unsavedMs / decision.intervalMs);
    this.#unsavedMs = 0;
    this.#savedUsd = this.#costUsd;
    this.#rule = undefined;
    return decision;
  }

  /** Notes how long the save took. */
  saved(durationMs: number): void {
    this.#saveMs.add(durationMs);
  }

  /** Notes that the save failed: its work is unsaved again. */
  failed({ unsavedMs, unsavedUsd }: Decision): void {
    this.#unsavedMs += unsavedMs;
    this.#savedUsd -= unsavedUsd;
  }
}

/** An average of measurements, the newest counting most. */
class Average {
  count = 0;
  mean = 0;
  #variance = 0;

  /** @param prior - counts as the first measurement. */
  constructor(prior?: number) {
    if (prior !== undefined) this.add(prior);
  }

  add(value: number): void {
    this.count++;
    const weight = Math.max(1 / this.count, WEIGHT);
    const off = value - this.mean;
    this.mean += weight * off;
    this.#variance = (1 - weight) * (this.#variance + weight * off * off);
  }

  get meanSquare(): number {
    return this.mean ** 2 + this.#variance;
  }
}

/** The duration and the cost of a node. */
class Node {
  readonly ms = new Average();
  readonly usd = new Average();
}

/** The amount of work between two saves that loses least, by Young and Daly. */
export function bestInterval(saveMs: number, failureMs: number): number {
  if (saveMs >= 2 * failureMs) return failureMs;
  const ratio = saveMs / (2 * failureMs);
  const young = Math.sqrt(2 * saveMs * failureMs);
  return young * (1 + Math.sqrt(ratio) / 3 + ratio / 9) - saveMs;
}
