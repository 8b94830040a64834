import {
  type Check,
  checkOptions,
  integer,
  list,
  number,
  type Refuse,
  refuseOption,
  string,
  strings,
  text,
} from "../../options.js";
import { encode } from "../encode.js";
import { freezeCopy } from "../freeze-copy.js";
import { OPAQUE, traitsOf } from "../json-traits.js";
import { type Kind, refuseJSON, type UserText, userTextsOf } from "../kinds.js";
import { defined, mapped } from "../shape.js";

/** Where and when something was written into the ledger. */
export interface Origin {
  /** The node that wrote it. */
  readonly node: string;
  /** How many nodes had completed before that one. */
  readonly step: number;
  /** When, ISO 8601. */
  readonly timestamp: string;
}

/** A choice that a node made, and why. */
export interface Decision extends Origin {
  /** What kind of decision it is, such as `routing`. */
  readonly type?: string;
  /** What was decided; not empty. */
  readonly description: string;
  /** Why. */
  readonly rationale?: string;
  /** The confidence, from 0 to 1. */
  readonly confidence?: number;
  /** What else was considered. */
  readonly alternatives?: readonly string[];
  /** The id of the agent that decided. */
  readonly agent?: string;
}

/** What is known about an agent. */
export interface Agent extends Origin {
  /** What kind of agent it is. */
  readonly type?: string;
  /** What it is doing, in its own words. */
  readonly status?: string;
  /** The confidence, from 0 to 1. */
  readonly confidence?: number;
  /** What blocks it. */
  readonly blockers?: readonly string[];
  /** What it needs to continue: anything that `data` may hold. */
  readonly state?: unknown;
  /** What it decided last; a decision that names this agent sets it too. */
  readonly lastDecision?: string;
  /** Where its output is: a path, a URL or the name of an output. */
  readonly outputRef?: string;
  /** Its confidence over time, oldest first; the newest 100 values. */
  readonly confidenceHistory?: readonly ConfidenceRecord[];
}

/** An agent's confidence at one point in time. */
export type ConfidenceRecord = {
  /** From 0 to 1. */
  readonly confidence: number;
  /** How many nodes had completed. */
  readonly step: number;
  /** When, ISO 8601. */
  readonly timestamp: string;
};

/** What a node records about an agent; the ledger adds the rest. */
export type AgentUpdate = Omit<Agent, keyof Origin | "confidenceHistory">;

/** An output of a run. */
export interface Output extends Origin {
  /** Where it is, or what it is if it is small: anything that `data` may hold. */
  readonly ref: unknown;
}

const confidence = number(0, 1);

/** A field: its check, and which text of it is the user's. */
interface Checked {
  readonly check: Check;
  readonly userText: UserText;
}

const fixed = (check: Check): Checked => ({ check, userText: "fixed" });
const own = (check: Check): Checked => ({ check, userText: "own" });
const texts: Checked = { check: strings, userText: { each: "own" } };

/** Rejects what can't be saved while the node that passed it can still fail. */
const saveable: Check = (name, value) => {
  if ((traitsOf(value) & OPAQUE) !== 0) encode(value, name);
};

const confidences: Check = (name, value, refuse) => {
  list(name, value, refuse);
  for (const [at, one] of (value as readonly unknown[]).entries()) {
    checkOptions(`${name}[${at}]`, one, { confidence, step: integer(0), timestamp: text }, refuse);
  }
};

const origin = { node: fixed(string), step: fixed(integer(0)), timestamp: fixed(text) };

/** What a node records, and a ledger's JSON holds. */
interface EntryKind<T> extends Kind<T> {
  /** A frozen copy of a value of a caller's, or with another `refuse` of one from elsewhere. */
  make(name: string, value: unknown, refuse?: Refuse): T;
}

/** A decision. */
export const decisionKind = entry<Decision>(["description"], {
  type: own(string),
  description: own(text),
  rationale: own(string),
  confidence: fixed(confidence),
  alternatives: texts,
  agent: own(text),
});

/** An agent. */
export const agentKind = entry<Agent>([], {
  type: own(string),
  status: own(string),
  confidence: fixed(confidence),
  blockers: texts,
  state: own(saveable),
  lastDecision: own(string),
  outputRef: own(string),
  confidenceHistory: fixed(confidences),
});

/** An output. */
export const outputKind = entry<Output>(["ref"], { ref: own(saveable) });

/** How many confidence values of an agent are kept. */
const MAX_CONFIDENCES = 100;

/** An agent with an update applied. */
export function updatedAgent(before: Agent | undefined, update: Agent): Agent {
  const { confidence: sure, step, timestamp } = update;
  const history = before?.confidenceHistory ?? [];
  const next = sure === undefined ? history : [...history, { confidence: sure, step, timestamp }];
  return freezeCopy({
    ...before,
    ...update,
    ...(next.length > 0 && { confidenceHistory: next.slice(-MAX_CONFIDENCES) }),
  });
}

/** Merges an agent that two branches changed: `other` wins, and the confidence histories are combined. */
export function mergedAgent(one: Agent | undefined, base: Agent | undefined, other: Agent): Agent {
  const seen = new Set(base?.confidenceHistory);
  const since = one?.confidenceHistory?.filter((record) => !seen.has(record)) ?? [];
  if (one === base || since.length === 0) return other;
  const all = [...since, ...(other.confidenceHistory ?? [])];
  all.sort((a, b) => (a.timestamp < b.timestamp ? -1 : a.timestamp > b.timestamp ? 1 : 0));
  return freezeCopy({ ...other, confidenceHistory: all.slice(-MAX_CONFIDENCES) });
}

/** A kind of entry: which of its fields an entry must have besides its origin, and all others. */
function entry<T extends Origin>(
  required: readonly string[],
  others: Readonly<Record<string, Checked>>,
): EntryKind<T> {
  const fields = { ...origin, ...others };
  const checks = mapped(fields, ({ check }) => check);
  const make = (name: string, value: unknown, refuse: Refuse = refuseOption): T => {
    // A field that is undefined counts as absent, so that a ledger reads back the same.
    const kept =
      typeof value === "object" && value !== null ? freezeCopy<object>(defined(value)) : value;
    checkOptions(name, kept, checks, refuse);
    for (const key of [...Object.keys(origin), ...required]) {
      if (!Object.hasOwn(kept as object, key)) {
        refuse(`${name}.${key}`, "must be given; got undefined");
      }
    }
    return kept as T;
  };
  return {
    userText: { fields: userTextsOf(fields) },
    read: (json, path, key) => make(`${path}.${key}`, json, refuseJSON),
    make,
  };
}
