import { type Check, checkOptions, integer } from "../../options.js";
import { defined, setKey } from "../shape.js";
import type { Agent, Decision, Origin, Output } from "./entries.js";
import type { Tally } from "./usage.js";

/** How much a ledger keeps. Usage is always kept: it grows with the graph, not with the run. */
export interface LedgerLimits {
  /** How many decisions to keep, the newest; an integer ≥ 0, 1000 by default. */
  readonly maxDecisions?: number | undefined;
  /** How many agents to keep, the most recently set; an integer ≥ 0, 1000 by default. */
  readonly maxAgents?: number | undefined;
  /** How many outputs to keep, the most recently set; an integer ≥ 0, 1000 by default. */
  readonly maxOutputs?: number | undefined;
}

/** How many entries a ledger has dropped because of its {@link LedgerLimits}. */
export interface LedgerDropped {
  /** Decisions. */
  readonly decisions: number;
  /** Agents. */
  readonly agents: number;
  /** Outputs. */
  readonly outputs: number;
}

/** Everything that a ledger consists of. */
export interface Contents {
  readonly tallies: ReadonlyMap<string, Tally>;
  readonly decisions: readonly Decision[];
  readonly agents: Readonly<Record<string, Agent>>;
  readonly outputs: Readonly<Record<string, Output>>;
  readonly dropped: LedgerDropped;
  readonly limits: Limits;
}

/** Every limit, checked. */
export type Limits = Readonly<Record<keyof LedgerLimits, number>>;

/** The contents of an empty ledger. */
export const blank: Contents = {
  tallies: new Map(),
  decisions: Object.freeze([]),
  agents: Object.freeze({}),
  outputs: Object.freeze({}),
  dropped: Object.freeze({ decisions: 0, agents: 0, outputs: 0 }),
  limits: Object.freeze({ maxDecisions: 1000, maxAgents: 1000, maxOutputs: 1000 }),
};

/** A check of an object with some of these fields, integers ≥ 0. */
function counts(fields: object): Check {
  const checks = Object.fromEntries(Object.keys(fields).map((key) => [key, integer(0)]));
  return (name, value, refuse) => checkOptions(name, value, checks, refuse);
}

/** Throws if the value is not valid {@link LedgerLimits}. */
export const checkLedgerLimits = counts(blank.limits);

/** Throws if the value is not valid {@link LedgerDropped}. */
export const checkDropped = counts(blank.dropped);

/** All limits, with defaults for omitted ones. */
export function fullLimits(limits: LedgerLimits): Limits {
  return Object.freeze({ ...blank.limits, ...defined(limits) });
}

/** Whether two sets of limits are the same. */
export function sameLimits(one: Limits, other: Limits): boolean {
  return Object.entries(one).every(([name, most]) => Reflect.get(other, name) === most);
}

/** The same contents, cut down to their limits and frozen. */
export function bounded(contents: Contents): Contents {
  const { limits, dropped } = contents;
  const excess = Math.max(0, contents.decisions.length - limits.maxDecisions);
  const decisions = excess === 0 ? contents.decisions : contents.decisions.slice(excess);
  const agents = newest(contents.agents, limits.maxAgents);
  const outputs = newest(contents.outputs, limits.maxOutputs);
  const lost = {
    decisions: dropped.decisions + excess,
    agents: dropped.agents + sizeOf(contents.agents) - sizeOf(agents),
    outputs: dropped.outputs + sizeOf(contents.outputs) - sizeOf(outputs),
  };
  return {
    tallies: contents.tallies,
    decisions: Object.freeze(decisions),
    agents: Object.freeze(agents),
    outputs: Object.freeze(outputs),
    dropped: Object.freeze(lost),
    limits,
  };
}

/** How many entries a record has. */
export function sizeOf(record: object): number {
  return Object.keys(record).length;
}

/** A record with one key set. */
export function put<T>(record: Readonly<Record<string, T>>, key: string, value: T) {
  const copy = { ...record };
  setKey(copy, key, value);
  return copy;
}

/** `record` with the entries that `other` has set since `base`. */
export function changed<T>(
  record: Readonly<Record<string, T>>,
  base: Readonly<Record<string, T>>,
  other: Readonly<Record<string, T>>,
  merge: (one: T | undefined, base: T | undefined, other: T) => T = (_one, _base, last) => last,
): Readonly<Record<string, T>> {
  const copy = { ...record };
  for (const [key, value] of Object.entries(other)) {
    const before = ownOf(base, key);
    if (before !== value) setKey(copy, key, merge(ownOf(record, key), before, value));
  }
  return copy;
}

/** The value of an own key. */
export function ownOf<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

/** A map as a record. */
export function objectOf<T, R>(
  map: ReadonlyMap<string, T>,
  make: (value: T) => R,
): Readonly<Record<string, R>> {
  const record: Record<string, R> = {};
  for (const [key, value] of map) setKey(record, key, make(value));
  return Object.freeze(record);
}

/**
 * The entries with the latest timestamps; among equal ones by name, so that the order of keys in JSON does
 * not matter.
 */
function newest<T extends Origin>(
  record: Readonly<Record<string, T>>,
  max: number,
): Readonly<Record<string, T>> {
  if (sizeOf(record) <= max) return record;
  const age = ([key, { timestamp }]: readonly [string, T]): string => `${timestamp} ${key}`;
  const entries = Object.entries(record).sort((a, b) => (age(a) < age(b) ? 1 : -1));
  return Object.fromEntries(entries.slice(0, max));
}
