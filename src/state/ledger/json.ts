import { check, checkOptions, list, type Refuse } from "../../options.js";
import { decode } from "../decode.js";
import { encode } from "../encode.js";
import { refuseJSON, type UserText, userTextsOf } from "../kinds.js";
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
import { agentKind, type Checked, checksOf, decisionKind, outputKind } from "./entries.js";
import { type TallyJSON, tallyFromJSON, tallyToJSON, usageText } from "./usage.js";

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
  checkOptions("ledger", tree, checks, refuseJSON);
  const { usage = {}, decisions = [], agents = {}, outputs = {}, ...rest } = tree as LedgerJSON;
  return {
    tallies: new Map(Object.entries(usage).map(each("ledger.usage", tallyFromJSON))),
    decisions: decisions.map((one, at) =>
      decisionKind.make(`ledger.decisions[${at}]`, one, refuseJSON),
    ),
    agents: entries("ledger.agents", agents, agentKind.make),
    outputs: entries("ledger.outputs", outputs, outputKind.make),
    dropped: { ...blank.dropped, ...rest.dropped },
    limits: fullLimits(rest.limits ?? {}),
  };
}

const record = check("an object", isPlainObject);
const parts: Readonly<Record<keyof LedgerJSON, Checked>> = {
  usage: { check: record, userText: { each: usageText, fixedKeys: true } },
  decisions: { check: list, userText: { each: decisionKind.userText } },
  agents: { check: record, userText: { each: agentKind.userText } },
  outputs: { check: record, userText: { each: outputKind.userText } },
  dropped: { check: checkDropped, userText: "fixed" },
  limits: { check: checkLedgerLimits, userText: "fixed" },
};
const checks = checksOf(parts);

/** Which text of a ledger is the user's. */
export const ledgerText: UserText = { fields: userTextsOf(parts) };

type Make<T> = (name: string, value: unknown, refuse: Refuse) => T;

function entries<T>(name: string, tree: unknown, make: Make<T>) {
  const { value } = decode(tree, name);
  record(name, value, refuseJSON);
  return Object.fromEntries(Object.entries(value as object).map(each(name, make)));
}

function each<T>(name: string, make: Make<T>) {
  return ([key, value]: [string, unknown]): [string, T] => [
    key,
    make(`${name}.${key}`, value, refuseJSON),
  ];
}
