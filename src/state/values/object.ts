import { isFields, looksTagged } from "../shape.js";
import { type EncodeWalk, type Kind, malformed } from "./kind.js";

/** An object literal as JSON; one that looks like a tag is wrapped in one. */
export function encodeObject(value: object, walk: EncodeWalk): unknown {
  const keys = Object.keys(value);
  const fields = walk.fields(value, keys);
  return looksTagged(keys) ? { $object: fields } : fields;
}

/** Objects that could be taken for a tag. */
export const taggedKind: Kind<object> = {
  tag: "$object",
  encode: encodeObject,
  decode: (content, walk, depth) =>
    isFields(content) ? Object.freeze(walk.fields(content, depth)) : malformed,
};
