import { check } from "../options.js";

/**
 * When the results of items are saved: `"item"` as they come in, sharing a save if one is under way; `"layer"`
 * when all are done, with the node; a number *n*, after every *n* items. In any case, a node that fails, pauses
 * or is stopped keeps its results.
 */
export type Saves = "item" | "layer" | number;

/** Checks the `saves` option. */
export const checkSaves = check(
  '"item", "layer" or an integer ≥ 1',
  (value) =>
    value === "item" || value === "layer" || (Number.isSafeInteger(value) && Number(value) >= 1),
);
