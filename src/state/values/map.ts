import { join, keep, knownOf, LEVEL, TAGGED } from "../json-traits.js";
import { Guard } from "./guard.js";
import { type Kind, malformed } from "./kind.js";

const guard = new Guard<Map<unknown, unknown>>("set", "delete", "clear");

export const mapKind: Kind<Map<unknown, unknown>> = {
  tag: "$map",
  prototype: Map.prototype,
  copy: (map, walk, depth) => {
    const copy = new Map<unknown, unknown>();
    walk.begin(map, copy);
    let known = TAGGED;
    let same = guard.has(map);
    for (const [key, item] of map) {
      const keptKey = walk.copy(key, depth + 2);
      const kept = walk.copy(item, depth + 2);
      copy.set(keptKey, kept);
      same &&= Object.is(keptKey, key) && Object.is(kept, item);
      known = join(known, join(knownOf(keptKey), knownOf(kept)));
    }
    // In JSON, the entries add a level.
    return keep(map, guard.freeze(copy), same, known + LEVEL);
  },
  encode: (map, walk) => ({ $map: walk.items([...map]) }),
  decode: (content, walk, depth) => {
    const isEntry = (entry: unknown): boolean => Array.isArray(entry) && entry.length === 2;
    if (!Array.isArray(content) || !content.every(isEntry)) return malformed;
    return guard.freeze(new Map(walk.items(content, depth) as [unknown, unknown][]));
  },
};
