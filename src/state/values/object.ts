import { isFields, looksTagged } from "../shape.js";
import { type Kind, malformed } from "./kind.js";

/** Object literals; one that could be taken for a tag is wrapped in one. */
export const taggedKind: Kind<object> = {
  tag: "$object",
  encode: (value, walk) => {
    const keys = Object.keys(value);
    const fields = walk.fields(value, keys);
    return looksTagged(keys) ? { $object: fields } : fields;
  },
  decode: (content, walk, depth) =>
    isFields(content) ? Object.freeze(walk.fields(content, depth)) : malformed,
};
