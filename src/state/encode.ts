/**
 * Exact values in JSON. JSON's own values stay as they are; any other becomes an object with one key that
 * starts with `$`, and a user's object that looks like that is wrapped in `$object`. The tags are those of
 * `values/` and no others; a class can be named only by the name it was registered under, so nothing in a
 * checkpoint can reach another class or function.
 *
 * Why not a library? Measured on a 100 KB conversation, relative to `JSON.stringify` and `JSON.parse`:
 * devalue 6 takes about 3.5 × and 1.5 × the time and rejects Errors and `__proto__` keys. seroval 1.8 loses
 * the least, but takes 6 × and 5 × and makes the text 1.8 × as long. superjson 2 takes 12 × to write and
 * silently drops functions, classes and fields of Errors. msgpackr 2 is fast (1.4 ×, 0.5 ×) but not JSON, and
 * silently drops the same plus URLs, -0 and holes. None keeps plain data plain or reports the path of a value
 * it can't keep. Here a State that needs no tag is passed to `JSON.stringify` unchanged (1.1 ×, and 1.3 ×
 * back), because `freezeCopy` has already inspected its values. It takes 5 KB.
 */
import { show } from "../errors.js";
import { isPlain, isSettled } from "./json-traits.js";
import { below, named, Refusal } from "./refusal.js";
import { MAX_DEPTH, setKey, tooDeep } from "./shape.js";
import { sparseKind } from "./values/array.js";
import { byType, kindOf, strayKey } from "./values/index.js";
import type { EncodeWalk, Kind } from "./values/kind.js";
import { taggedKind } from "./values/object.js";

/**
 * A value as a tree that `JSON.stringify` writes exactly. A value that occurs several times is encoded once,
 * and its tree occurs as often.
 *
 * @param known - caches the trees of immutable values: an unchanged value gets the same tree again. Such a
 *   tree must not be modified.
 * @throws SerializationError that names the path of what can't be saved.
 */
export function encode(value: unknown, root: string, known?: WeakMap<object, unknown>): unknown {
  return named(root, () => new Encoder(known).encode(value));
}

/** The tree of an object, and the nesting depth at which it was made; it is also valid at any smaller depth. */
interface Made {
  readonly tree: unknown;
  readonly depth: number;
}

class Encoder implements EncodeWalk {
  readonly #known: WeakMap<object, unknown> | undefined;
  /** The containers around the current value. */
  readonly #above = new Set<object>();
  readonly #made = new Map<object, Made>();
  /** How many objects were encoded. */
  #count = 0;

  constructor(known: WeakMap<object, unknown> | undefined) {
    this.#known = known;
  }

  encode(value: unknown): unknown {
    const above = this.#above;
    const depth = above.size;
    if (isPlain(value, depth)) return value;
    if (typeof value !== "object" || value === null) return this.#primitive(value);
    if (above.has(value)) throw new Refusal("contains itself: a checkpoint can't hold a cycle");
    if (depth > MAX_DEPTH) throw new Refusal(tooDeep);
    const made = this.#made.get(value);
    if (made !== undefined && depth <= made.depth) return made.tree;
    const known = this.#known !== undefined && isSettled(value, depth) ? this.#known : undefined;
    const before = known?.get(value);
    if (before !== undefined) return before;
    const count = ++this.#count;
    above.add(value);
    const tree = this.#object(value);
    above.delete(value);
    // An object without objects in it is as cheap to encode again.
    if (this.#count > count) this.#made.set(value, { tree, depth });
    known?.set(value, tree);
    return tree;
  }

  items(items: readonly unknown[], indexes?: readonly number[]): unknown[] {
    const encoded: unknown[] = [];
    let at = 0;
    try {
      // Not `map`: its stack frames would halve the possible depth.
      for (; at < items.length; at++) encoded.push(this.encode(items[at]));
    } catch (error) {
      throw below(error, indexes?.[at] ?? at);
    }
    return encoded;
  }

  fields(value: object, keys: readonly string[]): Record<string, unknown> {
    const fields: Record<string, unknown> = {};
    let at = "";
    try {
      for (const key of keys) {
        at = key;
        setKey(fields, key, this.encode(Reflect.get(value, key)));
      }
    } catch (error) {
      throw below(error, at);
    }
    return fields;
  }

  #primitive(value: unknown): unknown {
    const kind = byType.get(typeof value);
    if (kind !== undefined) return kind.encode(value, this);
    throw new Refusal(`is ${show(value)}, which a checkpoint can't hold: keep it out of the State`);
  }

  #object(value: object): unknown {
    const prototype: unknown = Object.getPrototypeOf(value);
    const isArray = Array.isArray(value);
    const isLiteral = prototype === Object.prototype || (prototype === null && !isArray);
    const kind: Kind | undefined = isLiteral
      ? taggedKind
      : isArray && prototype === Array.prototype
        ? sparseKind
        : kindOf(value, prototype);
    if (kind === undefined) {
      throw new Refusal(
        isArray
          ? "is an array of a class of its own: copy it into a plain array"
          : `is ${show(value)}, which a checkpoint can't hold: put plain data into the State, or register its class`,
      );
    }
    const key = strayKey(value, prototype, kind);
    if (key === undefined) return kind.encode(value, this);
    throw new Refusal(
      typeof key === "symbol"
        ? `has the key ${String(key)}: keys must be strings`
        : `is ${show(value)} with the key ${show(key)}: a checkpoint can't hold that`,
    );
  }
}
