import { show } from "../../errors.js";
import { OPAQUE, remember } from "../json-traits.js";
import { Refusal } from "../refusal.js";
import { attempt, type Kind, malformed } from "./kind.js";

export const regexpKind: Kind<RegExp> = {
  tag: "$regexp",
  prototype: RegExp.prototype,
  opaque: true,
  copy: ({ source, flags, lastIndex }) =>
    remember(Object.assign(new RegExp(source, flags), { lastIndex }), OPAQUE),
  encode: ({ source, flags, lastIndex }) => {
    // It can be set to anything, and a value that is not an integer would not load again.
    if (Number.isInteger(lastIndex)) return { $regexp: [source, flags, lastIndex] };
    throw new Refusal(`is a RegExp whose lastIndex is ${show(lastIndex)}: set it to an integer`);
  },
  decode: (content) =>
    attempt(() => {
      const [source, flags, lastIndex] = content as unknown[];
      if (typeof source !== "string" || typeof flags !== "string") return malformed;
      if (!Number.isInteger(lastIndex)) return malformed;
      return Object.assign(new RegExp(source, flags), { lastIndex });
    }),
};
