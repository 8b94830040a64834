import type { Immutable } from "./immutable.js";
import {
  cannotChange,
  join,
  keep,
  knownOf,
  OPAQUE,
  ownedTraits,
  PLAIN,
  TAGGED,
  traitsOf,
} from "./json-traits.js";
import { isOverflow } from "./refusal.js";
import { looksTagged, MAX_DEPTH, setKey, symbolOf } from "./shape.js";
import { copyArray } from "./values/array.js";
import { kindOf, strayKey } from "./values/index.js";
import type { CopyWalk } from "./values/kind.js";

/**
 * A deeply frozen copy of a value. Parts that a State already owns, or that can't change, are shared, and a
 * part that occurs several times is copied once.
 *
 * @param before - the State's previous value in this place: parts that are the same as there are not
 *   inspected.
 */
export function freezeCopy<T>(value: T, before?: unknown): Immutable<T> {
  if (typeof value !== "object" || value === null) return value as Immutable<T>;
  try {
    return new Copier().copy(value, 0, before) as Immutable<T>;
  } catch (error) {
    // A value too deep for the stack is kept as it is, like one too deep for a checkpoint.
    if (isOverflow(error)) return value as Immutable<T>;
    throw error;
  }
}

type Tree = Record<string, unknown>;

class Copier implements CopyWalk {
  /** Most values hold a single object, for which a Map is not worth it. */
  #first: object | undefined;
  #firstCopy: object | undefined;
  #copies: Map<object, object> | undefined;

  copy(value: unknown, depth: number, before?: unknown): unknown {
    if (typeof value !== "object" || value === null) return value;
    if (ownedTraits(value) !== undefined) return value;
    if (this.#first === value) return this.#firstCopy;
    const copied = this.#copies?.get(value);
    if (copied !== undefined) return copied;
    if (depth > MAX_DEPTH) return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (Array.isArray(value)) {
      return prototype === Array.prototype ? copyArray(value, this, depth, before) : value;
    }
    if (prototype === Object.prototype || prototype === null) {
      return copyObject(value as Tree, this, depth, before);
    }
    const kind = kindOf(value, prototype);
    if (kind?.copy === undefined || strayKey(value, prototype, kind) !== undefined) return value;
    const copy = kind.copy(value, this, depth) as object;
    this.begin(value, copy);
    return copy;
  }

  begin(value: object, copy: object): void {
    if (this.#first === undefined || this.#first === value) {
      this.#first = value;
      this.#firstCopy = copy;
    } else {
      this.#copies ??= new Map();
      this.#copies.set(value, copy);
    }
  }
}

/** A frozen copy of an object literal. */
function copyObject(value: Tree, walk: CopyWalk, depth: number, before: unknown): unknown {
  const copy = { ...value };
  walk.begin(value, copy);
  const keys = Object.keys(copy);
  let known = looksTagged(keys) ? TAGGED : PLAIN;
  let same = Object.getPrototypeOf(value) === Object.prototype && cannotChange(value);
  // Anything else may have getters, which must not be called.
  const past = traitsOf(before) === PLAIN ? (before as Tree | null) : undefined;
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
