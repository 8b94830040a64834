/** The sizes of the checkpoints of a run that the store still has. */
interface Kept {
  readonly sizes: number[];
  total: number;
}

/**
 * Estimates how much space checkpoints take: for each run the newest, as many as the store keeps. Runs beyond
 * `maxRuns` are counted as if they were never removed.
 */
export class StorageUse {
  readonly #keep: number;
  readonly #maxRuns: number;
  readonly #runs = new Map<string, Kept>();
  #forgotten = 0;
  #written = 0;
  #inUse = 0;

  constructor(keep: number, maxRuns: number) {
    this.#keep = keep;
    this.#maxRuns = maxRuns;
  }

  get written(): number {
    return this.#written;
  }

  get inUse(): number {
    return this.#forgotten + this.#inUse;
  }

  save(runId: string, bytes: number): void {
    this.#written += bytes;
    const kept = this.#runs.get(runId) ?? this.#remember(runId);
    // If all are kept, none is ever subtracted.
    if (this.#keep < Number.POSITIVE_INFINITY) kept.sizes.push(bytes);
    const gone = kept.sizes.length > this.#keep ? (kept.sizes.shift() ?? 0) : 0;
    kept.total += bytes - gone;
    this.#inUse += bytes - gone;
  }

  delete(runId: string): void {
    const kept = this.#runs.get(runId);
    this.#runs.delete(runId);
    this.#inUse -= kept?.total ?? 0;
  }

  #remember(runId: string): Kept {
    const [oldest] = this.#runs.size >= this.#maxRuns ? this.#runs : [];
    if (oldest !== undefined) {
      this.#runs.delete(oldest[0]);
      this.#inUse -= oldest[1].total;
      this.#forgotten += oldest[1].total;
    }
    const kept = { sizes: [], total: 0 };
    this.#runs.set(runId, kept);
    return kept;
  }
}
