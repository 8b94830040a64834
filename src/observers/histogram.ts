/** The distribution of many values. */
export interface HistogramSnapshot {
  /** How many values there were. */
  readonly count: number;
  /** Their sum. */
  readonly sum: number;
  /** The smallest; 0 if there were none. */
  readonly min: number;
  /** The largest; 0 if there were none. */
  readonly max: number;
  /** About half were at most this. */
  readonly p50: number;
  /** About 95 % were at most this. */
  readonly p95: number;
  /** About 99 % were at most this. */
  readonly p99: number;
  /** How many values were at most each of several fixed bounds. */
  readonly buckets: readonly HistogramBucket[];
}

/** How many values were at most a bound. */
export interface HistogramBucket {
  /** The bound; `Infinity` for the last. */
  readonly le: number;
  /** How many values were at most that. */
  readonly count: number;
}

/** Counts values by fixed bounds, in constant memory. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = 0;

  /** @param bounds - in ascending order. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array<number>(bounds.length + 1).fill(0);
  }

  record(value: number): void {
    const found = this.#bounds.findIndex((bound) => value <= bound);
    const at = found < 0 ? this.#bounds.length : found;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
    this.#min = Math.min(this.#min, value);
    this.#max = Math.max(this.#max, value);
  }

  snapshot(): HistogramSnapshot {
    let count = 0;
    const buckets = this.#counts.map((inBucket, at) => {
      count += inBucket;
      return { le: this.#bounds[at] ?? Number.POSITIVE_INFINITY, count };
    });
    const min = count === 0 ? 0 : this.#min;
    return {
      count,
      sum: this.#sum,
      min,
      max: this.#max,
      p50: this.#quantile(0.5, count),
      p95: this.#quantile(0.95, count),
      p99: this.#quantile(0.99, count),
      buckets,
    };
  }

  /** Interpolates within a bucket; never below the smallest value or above the largest. */
  #quantile(share: number, count: number): number {
    if (count === 0) return 0;
    let rank = share * count;
    const at = this.#counts.findIndex((inBucket) => {
      if (rank <= inBucket) return true;
      rank -= inBucket;
      return false;
    });
    const low = Math.max(this.#min, this.#bounds[at - 1] ?? 0);
    const high = Math.min(this.#max, this.#bounds[at] ?? this.#max);
    return low + (rank / (this.#counts[at] ?? rank)) * (high - low);
  }
}
