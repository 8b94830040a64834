import { show } from "../errors.js";
import { freezeCopy } from "./freeze-copy.js";
import { isJsonNumber, knownOf, OPAQUE, PLAIN, TAGGED } from "./json-traits.js";
import { below, named, Refusal } from "./refusal.js";
import { looksTagged, MAX_DEPTH, setKey, tooDeep } from "./shape.js";
import { byTag } from "./values/index.js";
import { type DecodeWalk, malformed } from "./values/kind.js";

/** A value from a checkpoint, with its traits. */
export interface Decoded {
  /** Deeply frozen. */
  readonly value: unknown;
  /** See `json-traits.ts`. */
  readonly traits: number;
}

/**
 * Restores the result of `encode` as a frozen value. It mutates the tree: pass one that nobody else holds,
 * fresh from `JSON.parse`.
 *
 * @throws SerializationError that names the path of a tag that is unknown or malformed.
 */
export function decode(tree: unknown, root: string): Decoded {
  const decoder = new Decoder();
  return { value: named(root, () => decoder.decode(tree, 0)), traits: decoder.traits };
}

type Tree = Record<string, unknown>;

class Decoder implements DecodeWalk {
  /** The combined traits of everything read so far. */
  traits = PLAIN;

  decode(tree: unknown, depth: number): unknown {
    if (typeof tree !== "object" || tree === null) return this.leaf(tree);
    if (depth > MAX_DEPTH) throw new Refusal(tooDeep);
    return Array.isArray(tree)
      ? Object.freeze(this.items(tree, depth + 1))
      : this.object(tree as Tree, depth);
  }

  /** A JSON primitive. Text from elsewhere may contain -0 and 1e400, which JSON reads but does not write. */
  leaf(value: unknown): unknown {
    if (typeof value === "number" && !isJsonNumber(value)) this.traits |= TAGGED;
    return value;
  }

  items(items: unknown[], depth: number): unknown[] {
    let at = 0;
    try {
      for (; at < items.length; at++) {
        const item = items[at];
        if (typeof item === "object") items[at] = this.decode(item, depth);
        else this.leaf(item);
      }
    } catch (error) {
      throw below(error, at);
    }
    return items;
  }

  /**
   * An object that is a tag, or else its fields. One walk handles both: the first key nearly always shows
   * that it is not a tag, and `for in` is faster than an array of keys.
   */
  object(tree: Tree, depth: number): unknown {
    let at: string | undefined;
    try {
      for (const key in tree) {
        if (at === undefined && key.charCodeAt(0) === 36 && looksTagged(Object.keys(tree)))
          return this.tag(key, tree[key], depth);
        at = key;
        const item = tree[key];
        // `for in` also visits anything added to Object.prototype.
        if (typeof item !== "object" || item === null || !Object.hasOwn(tree, key)) {
          this.leaf(item);
          continue;
        }
        const value = this.decode(item, depth + 1);
        if (value !== item) setKey(tree, key, value);
      }
    } catch (error) {
      throw at === undefined ? error : below(error, at);
    }
    return Object.freeze(tree);
  }

  fields(fields: Tree, depth: number): Tree {
    let at = "";
    try {
      for (at of Object.keys(fields)) setKey(fields, at, this.decode(fields[at], depth));
    } catch (error) {
      throw below(error, at);
    }
    return fields;
  }

  tag(tag: string, content: unknown, depth: number): unknown {
    const kind = byTag.get(tag);
    if (kind === undefined) throw new Refusal(`holds the unknown tag ${show(tag)}`);
    this.traits |= kind.opaque ? TAGGED | OPAQUE : TAGGED;
    const value = kind.decode(content, this, depth + 1);
    if (value === malformed) throw new Refusal(`holds a malformed ${tag}`);
    return value;
  }

  known(value: unknown): number {
    return knownOf(freezeCopy(value));
  }
}
