import { type Kind, malformed } from "./kind.js";

export const undefinedKind: Kind<undefined> = {
  tag: "$undefined",
  type: "undefined",
  encode: () => ({ $undefined: true }),
  decode: (content) => (content === true ? undefined : malformed),
};
