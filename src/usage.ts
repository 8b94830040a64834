/** What a node used up. */
export interface Usage {
  /** Tokens sent to a model: an integer ≥ 0. */
  readonly inputTokens?: number | undefined;
  /** Tokens received from the model: an integer ≥ 0. */
  readonly outputTokens?: number | undefined;
  /** What it cost, in US dollars: a number ≥ 0. */
  readonly costUsd?: number | undefined;
  /** The peak memory use, in MB: a number ≥ 0. Totals hold the highest, not the sum. */
  readonly memoryPeakMb?: number | undefined;
  /** Counters of your own, which add up: numbers ≥ 0. */
  readonly counters?: Readonly<Record<string, number | undefined>> | undefined;
  /** Your own counters whose totals are the highest value, not the sum: numbers ≥ 0. */
  readonly peaks?: Readonly<Record<string, number | undefined>> | undefined;
}

/** What a call to a model used. */
export interface UsageCall extends Usage {
  /** The model, for the `usage` event. */
  readonly model?: string | undefined;
  /** What a million tokens cost, in US dollars, for the `usage` event; determines `costUsd` if that is absent. */
  readonly price?: UsagePrice | undefined;
}

/** What a million tokens cost, in US dollars. */
export interface UsagePrice {
  /** Tokens sent to the model: a number ≥ 0. */
  readonly input: number;
  /** Tokens received from the model: a number ≥ 0. */
  readonly output: number;
}
