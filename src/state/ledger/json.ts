import { ConfigError, SerializationError } from "../../errors.js";
import { check, checkOptions, list } from "../../options.js";
import { decode } from "../decode.js";
import { encode } from "../encode.js";
import { isPlainObject } from "../shape.js";
import {
  blank,
  type Contents,
  checkDropped,
  checkLedgerLimits,
  fullLimits,
  type LedgerDropped,
  type LedgerLimits,
  objectOf,
  sameLimits,
  sizeOf,
} from "./contents.js";
import { toAgent, toDecision, toOutput } from "./entries.js";
import { type TallyJSON, tallyFromJSON, tallyToJSON } from "./usage.js";

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

/** A ledger's contents as JSON. */
export function encodeLedger(contents: Contents): LedgerJSON {
  const { tallies, decisions, agents, outputs, dropped, limits } = contents;
  return {
    ...(tallies.size > 0 && { usage: objectOf(tallies, tallyToJSON) }),
    ...(decisions.length > 0 && { decisions }),
    ...(sizeOf(agents) > 0 && { agents: encode(agents, "ledger.agents") }),
    ...(sizeOf(outputs) > 0 && { outputs: encode(outputs, "ledger.outputs") }),
    ...(dropped.decisions + dropped.agents + dropped.outputs > 0 && { dropped }),
    ...(!sameLimits(limits, blank.limits) && { limits }),
  };
}

/**
 * Restores a ledger's contents from JSON, checking all of it. It mutates the tree.
 *
 * @throws SerializationError that names the path of what is wrong.
 */
export function decodeLedger(tree: unknown): Contents {
  try {
    checkOptions("ledger", tree, parts);
    const { usage = {}, decisions = [], agents = {}, outputs = {}, ...rest } = tree as LedgerJSON;
    return {
      tallies: new Map(Object.entries(usage).map(each("ledger.usage", tallyFromJSON))),
      decisions: decisions.map((one, at) => toDecision(`ledger.decisions[${at}]`, one)),
      agents: entries("ledger.agents", agents, toAgent),
      outputs: entries("ledger.outputs", outputs, toOutput),
      dropped: { ...blank.dropped, ...rest.dropped },
      limits: fullLimits(rest.limits ?? {}),
    };
  } catch (error) {
    // The checks are those of a caller's input; here the input is a checkpoint.
    if (!(error instanceof ConfigError)) throw error;
    throw new SerializationError(error.option, error.problem);
  }
}

const record = check(
  "an object",
  (value) => typeof value === "object" && value !== null && isPlainObject(value),
);
const parts = {
  usage: record,
  decisions: list,
  agents: record,
  outputs: record,
  dropped: checkDropped,
  limits: checkLedgerLimits,
};

function entries<T>(name: string, tree: unknown, make: (name: string, value: unknown) => T) {
  const { value } = decode(tree, name);
  record(name, value);
  return Object.fromEntries(Object.entries(value as object).map(each(name, make)));
}

function each<T>(name: string, make: (name: string, value: unknown) => T) {
  return ([key, value]: [string, unknown]): [string, T] => [key, make(`${name}.${key}`, value)];
}
