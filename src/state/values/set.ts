import { join, keep, knownOf, TAGGED } from "../json-traits.js";
import { Guard } from "./guard.js";
import { type Kind, malformed } from "./kind.js";

const guard = new Guard<Set<unknown>>("add", "delete", "clear");

export const setKind: Kind<Set<unknown>> = {
  tag: "$set",
  prototype: Set.prototype,
  copy: (set, walk, depth) => {
    const copy = new Set<unknown>();
    walk.begin(set, copy);
    let known = TAGGED;
    let same = guard.has(set);
    for (const item of set) {
      const kept = walk.copy(item, depth + 1);
      copy.add(kept);
      same &&= Object.is(kept, item);
      known = join(known, knownOf(kept));
    }
    return keep(set, guard.freeze(copy), same, known);
  },
  encode: (set, walk) => ({ $set: walk.items([...set]) }),
  decode: (content, walk, depth) =>
    Array.isArray(content) ? guard.freeze(new Set(walk.items(content, depth))) : malformed,
};
