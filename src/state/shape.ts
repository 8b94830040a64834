/*
 * What a value looks like, and how large a checkpoint lets it be.
 */

/** Nesting past this depth is kept as it is, and refused when it is to be saved. */
export const MAX_DEPTH = 1000;

/** What is said of that. */
export const tooDeep = `is nested more than ${MAX_DEPTH} levels deep`;

/** An array this long is kept as it is, and refused when it is to be saved: a sparse one can be long at no cost. */
export const MAX_LENGTH = 2 ** 24;

/** A bigint longer than this takes so long to read that it is refused. */
export const MAX_DIGITS = 100_000;

/** Whether an object could be taken for one of our tags: its only key starts with `$`. */
export function looksTagged(keys: readonly string[]): boolean {
  return keys.length === 1 && keys[0]?.charCodeAt(0) === 36;
}

/** Whether a value is an object literal, and no instance of a class. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Sets a key without calling the `__proto__` setter. */
export function setKey(target: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    (target as Record<string, unknown>)[key] = value;
  }
}

/** An array of nothing but holes, which take no room however long it is. */
export function emptyArray(length: number): unknown[] {
  const array: unknown[] = [];
  // An item far out, so that the engine makes no room for what is between.
  if (length > 0) array[length - 1] = undefined;
  Reflect.deleteProperty(array, length - 1);
  return array;
}

/** Whether a key of an array names one of its items. */
export function isIndex(key: string, length: number): boolean {
  return String(Number(key)) === key && Number(key) < length;
}

const builtIns: ReadonlySet<unknown> = new Set(
  [Date, Map, Set, RegExp, URL, ArrayBuffer].map((type) => type.prototype as unknown),
);

/** A symbol that is a key of a value; a checkpoint can't hold it. Those of a URL are Node's own. */
export function symbolOf(value: object): symbol | undefined {
  return Object.getPrototypeOf(value) === URL.prototype
    ? undefined
    : Object.getOwnPropertySymbols(value)[0];
}

/** Whether instances of a class have a tag of their own. */
export function isBuiltIn(prototype: unknown): boolean {
  return builtIns.has(prototype);
}

/** A field that somebody gave to a Date, a Map or the like: a checkpoint can't hold it. */
export function fieldOf(value: object, prototype: unknown): string | undefined {
  return isBuiltIn(prototype) ? Object.keys(value)[0] : undefined;
}
