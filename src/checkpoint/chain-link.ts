import { own } from "../state/own.js";
import type { Unfinished } from "../state/record.js";
import { isPlainObject } from "../state/shape.js";
import { OPAQUE, traitsOf } from "../state/traits.js";

/** What a chain remembers: how many steps are done, and the data that they came to. */
export interface ChainLink {
  readonly completed: number;
  readonly data: object;
}

/** The key under which it does. */
export const CHAIN = "chain";

/** The key of the data after a step, where a chain is to keep that. */
export function stepKey(step: number): string {
  return `state ${step}`;
}

/**
 * What a node has done so far, with `change` done to the copies of the run's data that its chains
 * remember: they go on from those, and not from the State.
 */
export function withChainData(
  unfinished: Unfinished,
  change: (data: object) => object,
): Unfinished {
  let { results, opaque } = unfinished;
  const known = results.byKey();
  const put = (key: string, value: object): void => {
    const kept: object = own(value);
    opaque ||= (traitsOf(kept) & OPAQUE) !== 0;
    results = results.with(key, kept);
  };
  for (const [key, link] of known) {
    if (!isLink(key, link)) continue;
    put(key, { ...link, data: change(link.data) });
    for (let step = 1; step <= link.completed; step++) {
      const stateKey = key.slice(0, -CHAIN.length) + stepKey(step);
      const data = known.get(stateKey);
      if (isObject(data)) put(stateKey, change(data));
    }
  }
  return Object.freeze({ ...unfinished, results, opaque });
}

/** A chain may be inside a route or an item of a list, whose names come before its keys. */
function isLink(key: string, value: unknown): value is ChainLink {
  if (key !== CHAIN && !key.endsWith(` ${CHAIN}`)) return false;
  return isObject(value) && Number.isSafeInteger(value.completed) && isObject(value.data);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && isPlainObject(value);
}
