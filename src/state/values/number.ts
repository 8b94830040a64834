import { type Kind, malformed } from "./kind.js";

const names: ReadonlyMap<unknown, number> = new Map([
  ["-0", -0],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** The numbers that JSON lacks; see `isJsonNumber`. */
export const numberKind: Kind<number> = {
  tag: "$number",
  type: "number",
  encode: (value) => ({ $number: Object.is(value, -0) ? "-0" : String(value) }),
  decode: (content) => names.get(content) ?? malformed,
};
