import { Refusal } from "../refusal.js";
import { type Kind, malformed } from "./kind.js";

/** Longer ones are rejected: they take too long to parse. */
const MAX_DIGITS = 100_000;

export const bigintKind: Kind<bigint> = {
  tag: "$bigint",
  type: "bigint",
  encode: (value) => {
    const digits = value.toString();
    if (digits.length <= MAX_DIGITS) return { $bigint: digits };
    throw new Refusal(
      `is a bigint of ${digits.length} digits: a checkpoint holds up to ${MAX_DIGITS}`,
    );
  },
  decode: (content) =>
    typeof content === "string" && content.length <= MAX_DIGITS && /^-?\d+$/.test(content)
      ? BigInt(content)
      : malformed,
};
