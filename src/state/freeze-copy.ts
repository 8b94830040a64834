import type { Immutable } from "./immutable.js";
import { isOwned } from "./json-traits.js";
import { isOverflow } from "./refusal.js";
import { MAX_DEPTH } from "./shape.js";
import { copyArray } from "./values/array.js";
import { kindOf, strayKey } from "./values/index.js";
import type { CopyWalk } from "./values/kind.js";
import { copyObject } from "./values/object.js";

/**
 * A frozen copy of a value; parts that a State owns already, or that can't change, are shared, and what
 * is in the value several times is in the copy several times, not copied for each.
 *
 * @param before - what a State has had in its place: of what is the same there, nothing is looked up.
 */
export function freezeCopy<T>(value: T, before?: unknown): Immutable<T> {
  if (typeof value !== "object" || value === null) return value as Immutable<T>;
  try {
    return new Copier().copy(value, 0, before) as Immutable<T>;
  } catch (error) {
    // What is too deep for the stack is kept as it is, like what is too deep for a checkpoint.
    if (isOverflow(error)) return value as Immutable<T>;
    throw error;
  }
}

class Copier implements CopyWalk {
  /** Most values are one object; it is not worth a Map. */
  #first: object | undefined;
  #firstCopy: object | undefined;
  #copies: Map<object, object> | undefined;

  copy(value: unknown, depth: number, before?: unknown): unknown {
    if (typeof value !== "object" || value === null || isOwned(value)) return value;
    if (this.#first === value) return this.#firstCopy;
    const copied = this.#copies?.get(value);
    if (copied !== undefined) return copied;
    if (depth > MAX_DEPTH) return value;
    const prototype: unknown = Object.getPrototypeOf(value);
    if (Array.isArray(value)) {
      return prototype === Array.prototype ? copyArray(value, this, depth, before) : value;
    }
    if (prototype === Object.prototype || prototype === null) {
      return copyObject(value as Record<string, unknown>, this, depth, before);
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
