import { type Check, check, checkOptions, integer, number, text } from "../../options.js";
import type { Usage, UsageCall, UsagePrice } from "../../usage.js";
import { type Kind, refuseJSON } from "../kinds.js";
import { isPlainObject, mapped, setKey } from "../shape.js";

export type { Usage, UsageCall };

/** Sums of {@link Usage}. */
export interface UsageTotals {
  /** Tokens sent to models. */
  readonly inputTokens: number;
  /** Tokens received from models. */
  readonly outputTokens: number;
  /** What it cost, in US dollars. */
  readonly costUsd: number;
  /** The highest memory use, in MB. */
  readonly memoryPeakMb: number;
  /** The sums of your own counters. */
  readonly counters: Readonly<Record<string, number>>;
  /** The highest values of your own counters that are not summed. */
  readonly peaks: Readonly<Record<string, number>>;
}

/**
 * Totals by counter, as integers in units of 10^-12, so that sums are exact in any order. None is 0. The
 * user's own counters are prefixed with their field: `counters.apiCalls`.
 */
export type Tally = ReadonlyMap<string, bigint>;

const PLACES = 12;
const ONE = 10n ** BigInt(PLACES);
const MILLION = 1_000_000;

/** The fields that hold the user's own counters. */
const groups = ["counters", "peaks"] as const;

const tokens = integer(0);
const amount = number(0, Number.MAX_SAFE_INTEGER);
const group = check("an object of numbers", isPlainObject);
const counters: Check = (name, value, refuse) => {
  group(name, value, refuse);
  for (const [counter, one] of Object.entries(value as object)) {
    if (one !== undefined) amount(`${name}.${counter}`, one, refuse);
  }
};
const sums = { inputTokens: tokens, outputTokens: tokens, costUsd: amount, memoryPeakMb: amount };
const known = Object.keys(sums);
const fields = {
  ...sums,
  counters,
  peaks: counters,
  model: text,
  price: (name: string, value: unknown): void => {
    checkOptions(name, value, { input: amount, output: amount });
    const { input, output } = value as UsagePrice;
    amount(`${name}.input`, input);
    amount(`${name}.output`, output);
  },
};

/** A caller's usage as a tally. */
export function tallyOf(name: string, usage: unknown): Tally {
  checkOptions(name, usage, fields);
  const given = usage as UsageCall;
  const costUsd = given.costUsd ?? costOf(given);
  return tallied({ ...given, costUsd }, (_counter, value) => toUnits(Number(value)));
}

/** A tally of what is set in some usage, whose fields were checked. */
function tallied(usage: object, unitsOf: (counter: string, value: unknown) => bigint): Tally {
  const tally = new Map<string, bigint>();
  const add = (counter: string, value: unknown): void => {
    if (value !== undefined) put(tally, counter, unitsOf(counter, value));
  };
  for (const counter of known) add(counter, Reflect.get(usage, counter));
  for (const group of groups) {
    const own: object = Reflect.get(usage, group) ?? {};
    for (const [counter, value] of Object.entries(own)) add(`${group}.${counter}`, value);
  }
  return tally;
}

function costOf({ price, inputTokens = 0, outputTokens = 0 }: UsageCall): number {
  return price === undefined
    ? 0
    : (price.input * inputTokens + price.output * outputTokens) / MILLION;
}

const jsonFields = { ...mapped(sums, () => () => {}), counters: group, peaks: group };

/**
 * A tally in a record. Sums in its JSON may be decimal strings, and larger than a caller may pass. Only the names of
 * counters are the user's text.
 */
export const tally: Kind<Tally, TallyJSON> = {
  userText: {
    fields: { counters: { each: "fixed" }, peaks: { each: "fixed" } },
    each: "fixed",
    fixedKeys: true,
  },
  read: (json, path, key) => {
    const at = `${path}.${key}`;
    checkOptions(at, json, jsonFields, refuseJSON);
    return tallied(json as object, (counter, value) => {
      if (typeof value === "string" && /^\d{1,40}\.\d{12}$/.test(value)) {
        return BigInt(value.replace(".", ""));
      }
      amount(`${at}.${counter}`, value, refuseJSON);
      return toUnits(Number(value));
    });
  },
  write: tallyToJSON,
};

/** A tally as JSON: numbers, or decimal strings where a number would not be exact. */
function tallyToJSON(tally: Tally): TallyJSON {
  return grouped(tally, (units) => {
    const value = toNumber(units);
    const exact = value <= Number.MAX_SAFE_INTEGER && toUnits(value) === units;
    return exact ? value : toDecimal(units);
  });
}

/** A tally as JSON. */
export interface TallyJSON {
  /** A counter. */
  readonly [field: string]: number | string | Readonly<Record<string, number | string>>;
}

/** A tally as the usage a caller would pass, without zeros. */
export function usageOf(tally: Tally): Usage {
  return Object.freeze(grouped(tally, toNumber)) as Usage;
}

/** A tally as totals, with zeros. */
export function totalsOf(tally: Tally): UsageTotals {
  const { counters: sums = none, peaks = none, ...rest } = usageOf(tally) as Partial<UsageTotals>;
  const zero = { inputTokens: 0, outputTokens: 0, costUsd: 0, memoryPeakMb: 0 };
  return Object.freeze({ ...zero, ...rest, counters: sums, peaks });
}

const none: Readonly<Record<string, number>> = Object.freeze({});

/** The sum of two tallies. */
export function plus(one: Tally, other: Tally): Tally {
  const sum = new Map(one);
  for (const [counter, units] of other) {
    const before = sum.get(counter) ?? 0n;
    put(sum, counter, !isPeak(counter) ? before + units : units > before ? units : before);
  }
  return sum;
}

/** The increase from `base` to `one`; never negative. A peak is included whole if it is higher than before. */
export function minus(one: Tally, base: Tally | undefined): Tally {
  const rest = new Map<string, bigint>();
  for (const [counter, units] of one) {
    const before = base?.get(counter) ?? 0n;
    put(rest, counter, !isPeak(counter) ? units - before : units > before ? units : 0n);
  }
  return rest;
}

function isPeak(counter: string): boolean {
  return counter === "memoryPeakMb" || counter.startsWith("peaks.");
}

/** The counters of a tally, with the user's own in one object per field. */
function grouped<T>(tally: Tally, make: (units: bigint) => T) {
  const made: Record<string, T | Record<string, T>> = {};
  const own: Record<string, Record<string, T>> = {};
  for (const [counter, units] of tally) {
    const group = groups.find((one) => counter.startsWith(`${one}.`));
    if (group === undefined) {
      made[counter] = make(units);
    } else {
      own[group] ??= {};
      setKey(own[group], counter.slice(group.length + 1), make(units));
    }
  }
  for (const group of groups) if (own[group]) made[group] = Object.freeze(own[group]);
  return made;
}

function put(tally: Map<string, bigint>, counter: string, units: bigint): void {
  if (units > 0n) tally.set(counter, units);
}

/** The shortest decimal notation of a number, rounded to 12 places: 0.1 is exactly 0.1. */
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
