import { check, integer } from "../../options.js";
import { isPlainObject, setKey } from "../shape.js";

/** What a node used up. Any other counter may be added, such as `apiCalls`. */
export interface Usage {
  /** Tokens sent to a model: a whole number from 0 up. */
  readonly inputTokens?: number | undefined;
  /** Tokens that came back: a whole number from 0 up. */
  readonly outputTokens?: number | undefined;
  /** What it cost, in US dollars: a number from 0 up. */
  readonly costUsd?: number | undefined;
  /** Any other counter: a number from 0 up. */
  readonly [other: string]: number | undefined;
}

/** Sums of {@link Usage}. */
export interface UsageTotals {
  /** Tokens sent to models. */
  readonly inputTokens: number;
  /** Tokens that came back. */
  readonly outputTokens: number;
  /** What it cost, in US dollars. */
  readonly costUsd: number;
  /** The other counters that were given. */
  readonly [other: string]: number;
}

/** Sums by counter, as whole numbers of 10^-12, so that adding is exact in any order. None is 0. */
export type Tally = ReadonlyMap<string, bigint>;

const PLACES = 12;
const ONE = 10n ** BigInt(PLACES);

const counters = check(
  "an object of numbers",
  (value) => typeof value === "object" && value !== null && isPlainObject(value),
);
const tokens = integer(0);
const amount = check(
  `a number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  (value) => typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER,
);

/** What a caller says was used, as a tally. */
export function tallyOf(name: string, usage: unknown): Tally {
  const tally = new Map<string, bigint>();
  for (const [counter, value] of entriesOf(name, usage)) {
    if (value === undefined) continue;
    const checkOne = counter === "inputTokens" || counter === "outputTokens" ? tokens : amount;
    checkOne(`${name}.${counter}`, value);
    put(tally, counter, toUnits(Number(value)));
  }
  return tally;
}

/** A tally out of JSON; sums may be decimal text, and greater than a caller may give. */
export function tallyFromJSON(name: string, json: unknown): Tally {
  const tally = new Map<string, bigint>();
  for (const [counter, value] of entriesOf(name, json)) {
    if (typeof value === "string" && /^\d{1,40}\.\d{12}$/.test(value)) {
      put(tally, counter, BigInt(value.replace(".", "")));
    } else {
      amount(`${name}.${counter}`, value);
      put(tally, counter, toUnits(Number(value)));
    }
  }
  return tally;
}

/** A tally as JSON: numbers, or decimal text where a number would not read back the same. */
export function tallyToJSON(tally: Tally): Readonly<Record<string, number | string>> {
  const json: Record<string, number | string> = {};
  for (const [counter, units] of tally) {
    const value = toNumber(units);
    const exact = value <= Number.MAX_SAFE_INTEGER && toUnits(value) === units;
    setKey(json, counter, exact ? value : toDecimal(units));
  }
  return json;
}

/** A tally for readers. */
export function totalsOf(tally: Tally): UsageTotals {
  const totals = { inputTokens: 0, outputTokens: 0, costUsd: 0 };
  for (const [counter, units] of tally) setKey(totals, counter, toNumber(units));
  return Object.freeze(totals);
}

/** Both tallies together. */
export function plus(one: Tally, other: Tally): Tally {
  const sum = new Map(one);
  for (const [counter, units] of other) put(sum, counter, (sum.get(counter) ?? 0n) + units);
  return sum;
}

/** What `one` has more than `base`; never less than nothing. */
export function minus(one: Tally, base: Tally): Tally {
  const rest = new Map<string, bigint>();
  for (const [counter, units] of one) put(rest, counter, units - (base.get(counter) ?? 0n));
  return rest;
}

function put(tally: Map<string, bigint>, counter: string, units: bigint): void {
  if (units > 0n) tally.set(counter, units);
}

function entriesOf(name: string, value: unknown): [string, unknown][] {
  counters(name, value);
  return Object.entries(value as object);
}

/** The decimal number that a person would write for this one, rounded to 12 places: 0.1 is 0.1. */
function toUnits(value: number): bigint {
  if (Number.isSafeInteger(value)) return BigInt(value) * ONE;
  const [digits = "", exponent = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = digits.split(".");
  const shift = PLACES + Number(exponent) - fraction.length;
  const units = BigInt(whole + fraction);
  if (shift >= 0) return units * 10n ** BigInt(shift);
  const step = 10n ** BigInt(-shift);
  return (units + step / 2n) / step;
}

function toDecimal(units: bigint): string {
  const digits = units.toString().padStart(PLACES + 1, "0");
  return `${digits.slice(0, -PLACES)}.${digits.slice(-PLACES)}`;
}

function toNumber(units: bigint): number {
  return Number(toDecimal(units));
}
