import { check } from "../options.js";

/**
 * When the results of items are saved: `"item"` as each comes in, those that come while a save is under
 * way together; `"layer"` when all are done, with the node; a number, every so many items. Whatever it is,
 * a node that fails, pauses or is stopped keeps the results it has.
 *
 * @inline
 */
export type Saves = "item" | "layer" | number;

/** Refuses what can't say when to save. */
export const checkSaves = check(
  '"item", "layer" or an integer ≥ 1',
  (value) =>
    value === "item" || value === "layer" || (Number.isSafeInteger(value) && Number(value) >= 1),
);
