import { type Check, checkOptions, integer } from "../../options.js";
import {
  byName,
  type DefaultKind,
  type Kind,
  type KindsOf,
  list,
  object,
  or,
  refuseJSON,
  tagged,
} from "../kinds.js";
import { mapped, ownOf, sameFields, setKey } from "../shape.js";
import {
  type Agent,
  agentKind,
  type Decision,
  decisionKind,
  type Origin,
  type Output,
  outputKind,
} from "./entries.js";
import { type Tally, type TallyJSON, tally } from "./usage.js";

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
  /** By node. */
  readonly usage: Readonly<Record<string, Tally>>;
  readonly decisions: readonly Decision[];
  readonly agents: Readonly<Record<string, Agent>>;
  readonly outputs: Readonly<Record<string, Output>>;
  readonly dropped: LedgerDropped;
  /** Every limit, checked. */
  readonly limits: Readonly<Record<keyof LedgerLimits, number>>;
}

/** A ledger as JSON; empty and default fields are omitted. */
export interface LedgerJSON {
  /** Usage by node and counter; a string where a number would not be exact. */
  readonly usage?: Readonly<Record<string, TallyJSON>>;
  /** See {@link Ledger.decisions}. */
  readonly decisions?: readonly unknown[];
  /** See {@link Ledger.agents}; with tags where JSON has no type for a value. */
  readonly agents?: unknown;
  /** See {@link Ledger.outputs}; with tags where JSON has no type for a value. */
  readonly outputs?: unknown;
  /** See {@link Ledger.dropped}. */
  readonly dropped?: LedgerDropped;
  /** See {@link Ledger.withLimits}. */
  readonly limits?: LedgerLimits;
}

/** The contents of an empty ledger. */
export const blank: Contents = {
  usage: Object.freeze({}),
  decisions: Object.freeze([]),
  agents: Object.freeze({}),
  outputs: Object.freeze({}),
  dropped: Object.freeze({ decisions: 0, agents: 0, outputs: 0 }),
  limits: Object.freeze({ maxDecisions: 1000, maxAgents: 1000, maxOutputs: 1000 }),
};

/** The checks of an object's fields, integers ≥ 0. */
function countChecks(fields: object): Readonly<Record<string, Check>> {
  return Object.fromEntries(Object.keys(fields).map((key) => [key, integer(0)]));
}

/** The checks of {@link LedgerLimits}. */
export const limitChecks = countChecks(blank.limits);

/** Counts, of which those that are absent are as in `empty`. */
function countsOr<T extends object>(empty: T, checks = countChecks(empty)): DefaultKind<T> {
  const kind: Kind<T> = {
    userText: "fixed",
    read: (json, path, key) => {
      checkOptions(`${path}.${key}`, json, checks, refuseJSON);
      return { ...empty, ...(json as Partial<T>) };
    },
  };
  return or(kind, empty, (given) => sameFields(given, empty));
}

const kinds: KindsOf<Contents> = {
  // The names of nodes are not the user's.
  usage: or({ ...byName(tally), userText: { each: tally.userText, fixedKeys: true } }, blank.usage),
  decisions: or(list(decisionKind), blank.decisions),
  agents: or(tagged("ledger.agents", byName(agentKind)), blank.agents),
  outputs: or(tagged("ledger.outputs", byName(outputKind)), blank.outputs),
  dropped: countsOr(blank.dropped),
  limits: countsOr(blank.limits, limitChecks),
};

const known = mapped(kinds, () => () => {});
const all = object<Contents, LedgerJSON>(kinds, "ledger");

/** The contents of a ledger in a record. It mutates the JSON. */
export const contents: Kind<Contents, LedgerJSON> = {
  ...all,
  read: (json, path, key) => {
    checkOptions("ledger", json, known, refuseJSON);
    return bounded(all.read(json, path, key));
  },
};

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
    ...contents,
    decisions: Object.freeze(decisions),
    agents: Object.freeze(agents),
    outputs: Object.freeze(outputs),
    dropped: Object.freeze(lost),
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
