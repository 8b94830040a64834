import { type Check, checkOptions, integer, number, object } from "../options.js";
import type { UsageCall } from "../state/ledger.js";

/** The price of a model, in US dollars per million tokens. */
export interface Price {
  /** Tokens sent. */
  readonly input: number;
  /** Tokens received. */
  readonly output: number;
  /** Tokens sent that the provider reads from its cache; the price of `input` by default. */
  readonly cachedInput?: number;
  /** Tokens sent that the provider writes to its cache; the price of `input` by default. */
  readonly cacheWrite?: number;
}

/**
 * Prices by model id, such as `gpt-5`. A model that is not listed has no cost.
 *
 * @example
 * ```ts
 * import type { Prices } from "waymark/ai";
 *
 * const price: Prices = { "gpt-5": { input: 1.25, output: 10 } };
 * console.log(price["gpt-5"]?.output); // 10
 * ```
 */
export type Prices = Readonly<Record<string, Price>>;

/** How calls are recorded and priced. */
export interface CallOptions {
  /** The prices of the models; without them no cost is recorded. */
  readonly price?: Prices;
  /**
   * How many calls the node keeps, an integer ≥ 1; all by default. Older ones are dropped, and a resume that reaches
   * one makes it again. Set it in a node that saves its messages with `ctx.checkpoint` as it loops.
   */
  readonly keepCalls?: number;
}

/** The tokens that one call used. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** How many of the input tokens were read from a cache, and how many were written to one. */
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

const amount = number(0);
const price: Check = (name, value) => {
  checkOptions(name, value, {
    input: amount,
    output: amount,
    cachedInput: amount,
    cacheWrite: amount,
  });
  const { input, output } = value as Partial<Price>;
  amount(`${name}.input`, input);
  amount(`${name}.output`, output);
};

/** The checks of {@link CallOptions}. */
export const callChecks: Readonly<Record<string, Check>> = {
  keepCalls: integer(1, true),
  price: (name, value) => {
    object(name, value);
    for (const [model, one] of Object.entries(value as object)) price(`${name}.${model}`, one);
  },
};

/** What a call adds to the ledger. The model that answered may have a longer name than the one requested. */
export function usageOf(
  tokens: Tokens,
  models: readonly unknown[],
  prices: Prices | undefined,
): UsageCall {
  const names = models.filter((one): one is string => typeof one === "string" && one !== "");
  const priced = names.find((one) => Object.hasOwn(prices ?? {}, one));
  const [model] = names;
  const { input: inputTokens, output: outputTokens } = tokens;
  const usage = {
    ...{ inputTokens, outputTokens, counters: { modelCalls: 1 } },
    ...(model !== undefined && { model }),
  };
  const found = priced === undefined ? undefined : prices?.[priced];
  if (found === undefined) return usage;
  const { input, output } = found;
  return { ...usage, costUsd: costOf(tokens, found), price: { input, output } };
}

const MILLION = 1_000_000;

function costOf({ input, output, cacheRead, cacheWrite }: Tokens, price: Price): number {
  const fresh = Math.max(0, input - cacheRead - cacheWrite);
  const cached = cacheRead * (price.cachedInput ?? price.input);
  const written = cacheWrite * (price.cacheWrite ?? price.input);
  return (fresh * price.input + cached + written + output * price.output) / MILLION;
}

/** The value at a path in an object of unknown shape; `undefined` if there is none. */
export function fieldAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = Reflect.get(found, key);
  }
  return found;
}

/** The first of these that is a token count; 0 if none is. */
export function countOf(...counts: readonly unknown[]): number {
  return (
    counts.find((count): count is number => Number.isSafeInteger(count) && Number(count) >= 0) ?? 0
  );
}
