import { freezeCopy } from "./freeze-copy.js";
import { OPAQUE, traitsOf } from "./json-traits.js";
import type { Unfinished } from "./results.js";
import { isPlainObject } from "./shape.js";

/** The prefix of the keys under which an unfinished node keeps copies of the run's data. */
export const DATA_COPY = "data: ";

/**
 * Applies `change` to the copies of the run's data in an unfinished node's results: the node continues from
 * those, not from the State.
 */
export function withDataCopies(
  unfinished: Unfinished,
  change: (data: object) => object,
): Unfinished {
  let { results, opaque } = unfinished;
  for (const [key, data] of results.byKey()) {
    if (!key.startsWith(DATA_COPY) || !isObject(data)) continue;
    const kept: object = freezeCopy(change(data));
    opaque ||= (traitsOf(kept) & OPAQUE) !== 0;
    results = results.with(key, kept);
  }
  return Object.freeze({ ...unfinished, results, opaque });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && isPlainObject(value);
}
