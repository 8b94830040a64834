import {
  cannotChange,
  join,
  keep,
  knownOf,
  OPAQUE,
  PLAIN,
  TAGGED,
  traitsOf,
} from "../json-traits.js";
import { isFields, looksTagged, setKey, symbolOf } from "../shape.js";
import { type CopyWalk, type EncodeWalk, type Kind, malformed } from "./kind.js";

type Fields = Record<string, unknown>;

/** A frozen copy of an object literal. */
export function copyObject(value: Fields, walk: CopyWalk, depth: number, before: unknown): unknown {
  const copy = { ...value };
  walk.begin(value, copy);
  const keys = Object.keys(copy);
  let known = looksTagged(keys) ? TAGGED : PLAIN;
  let same = Object.getPrototypeOf(value) === Object.prototype && cannotChange(value);
  // Anything else may have getters, which must not be called.
  const past = traitsOf(before) === PLAIN ? (before as Fields | null) : undefined;
  for (const key of keys) {
    const item = copy[key];
    const kept = walk.copy(item, depth + 1, past?.[key]);
    if (!Object.is(kept, item)) {
      setKey(copy, key, kept);
      same = false;
    }
    known = join(known, knownOf(kept));
  }
  if (symbolOf(copy) !== undefined) known |= OPAQUE;
  return keep(value, copy, same, known);
}

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
