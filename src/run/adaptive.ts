import type { EventMap } from "../event-map.js";
import type { MaxLoss } from "./config.js";

/** Without experience, a failure is expected after so much work, in milliseconds. */
const PRIOR_MS = 10 * 60 * 1000;
/** What a save is taken to cost before one was measured, in milliseconds. */
const FIRST_SAVE_MS = 1;
/** How much a new measurement counts against those before. */
const WEIGHT = 0.2;

/**
 * Decides when a checkpoint is worth its cost. With save cost C and mean time between failures M the
 * best work between two saves is about √(2CM) (Young), more exactly Daly's
 * √(2CM)·[1 + ⅓·√(C/2M) + ⅑·C/2M] − C. Saves come only between nodes, so the one nearest to
 * that is taken. M starts from a prior of one failure in ten minutes of work, and learns from the work
 * the run has done and the crashes its record shows.
 */
export class AdaptiveInterval {
  readonly #maxLoss: MaxLoss;
  #saveMs = FIRST_SAVE_MS;
  #isMeasured = false;
  #nodeMs = 0;
  #nodeCost = 0;
  #workedMs: number;
  #crashes: number;
  #unsavedMs = 0;
  #savedCost: number;

  /**
   * @param workedMs - how long the nodes of the run have worked so far.
   * @param crashes - how often it was resumed after a crash.
   * @param costUsd - what it has cost so far.
   */
  constructor(maxLoss: MaxLoss, workedMs: number, crashes: number, costUsd: number) {
    this.#maxLoss = maxLoss;
    this.#workedMs = workedMs;
    this.#crashes = crashes;
    this.#savedCost = costUsd;
  }

  /** What the next decision would be made of. */
  get decision(): NonNullable<EventMap["checkpoint.save"]["adaptive"]> {
    const saveMs = this.#saveMs;
    const failureMs = (PRIOR_MS + this.#workedMs) / (1 + this.#crashes);
    const intervalMs = bestInterval(saveMs, failureMs);
    return { unsavedMs: this.#unsavedMs, intervalMs, saveMs, failureMs };
  }

  /** Whether to save, now that a node has worked for so long and the run has cost so much. */
  isDue(durationMs: number, costUsd: number): boolean {
    const spent = costUsd - this.#savedCost;
    this.#workedMs += durationMs;
    this.#unsavedMs += durationMs;
    this.#nodeMs = blend(this.#nodeMs, durationMs);
    this.#nodeCost = blend(this.#nodeCost, Math.max(0, spent));
    const { ms = Number.POSITIVE_INFINITY, costUsd: most = Number.POSITIVE_INFINITY } =
      this.#maxLoss;
    // The next node would take it over the limit: what it does is not saved either until it is done.
    if (this.#unsavedMs + this.#nodeMs > ms || spent + this.#nodeCost > most) return true;
    return this.#unsavedMs + this.#nodeMs / 2 >= this.decision.intervalMs;
  }

  /** Notes that all is saved, and what that took. */
  saved(durationMs: number, costUsd: number): void {
    this.#saveMs = this.#isMeasured ? blend(this.#saveMs, durationMs) : durationMs;
    this.#isMeasured = true;
    this.#unsavedMs = 0;
    this.#savedCost = costUsd;
  }
}

/** How much work between two saves loses least, by Young and Daly. */
export function bestInterval(saveMs: number, failureMs: number): number {
  if (saveMs >= 2 * failureMs) return failureMs;
  const ratio = saveMs / (2 * failureMs);
  const young = Math.sqrt(2 * saveMs * failureMs);
  return young * (1 + Math.sqrt(ratio) / 3 + ratio / 9) - saveMs;
}

function blend(before: number, now: number): number {
  return before === 0 ? now : before + WEIGHT * (now - before);
}
