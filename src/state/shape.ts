/*
 * The shapes of values, and how deep a checkpoint lets them nest.
 */

/** Values nested deeper are kept as they are, and rejected by a save. */
export const MAX_DEPTH = 1000;

/** The problem reported for those. */
export const tooDeep = `is nested more than ${MAX_DEPTH} levels deep`;

/** Whether an object could be taken for a tag: its only key starts with `$`. */
export function looksTagged(keys: readonly string[]): boolean {
  return keys.length === 1 && keys[0]?.charCodeAt(0) === 36;
}

/** Whether a value is a plain object, not an instance of a class. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Whether a value from JSON is an object with fields. */
export function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object whose fields are absent rather than undefined. */
type Defined<T> = {
  [K in keyof T as undefined extends T[K] ? never : K]: T[K];
} & { [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined> };

/** An object without the fields that are undefined. */
export function defined<T extends object>(value: T): Defined<T> {
  const fields = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(fields) as Defined<T>;
}

/** Whether a list has no items, or an object no fields. */
export function isBlank(value: object): boolean {
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** Whether an object has the same fields as another. */
export function sameFields(one: object, other: object): boolean {
  return Object.entries(other).every(([key, value]) => Reflect.get(one, key) === value);
}

/** The value of an own key. */
export function ownOf<T>(object: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** An object with the same keys, frozen. */
export function mapped<T, R>(
  object: Readonly<Record<string, T>>,
  make: (value: T, key: string) => R,
): Readonly<Record<string, R>> {
  const made: Record<string, R> = {};
  for (const [key, value] of Object.entries(object)) setKey(made, key, make(value, key));
  return Object.freeze(made);
}

/** Sets a key without calling the `__proto__` setter. */
export function setKey(target: object, key: string, value: unknown): void {
  if (key === "__proto__") define(target, key, value, true);
  else (target as Record<string, unknown>)[key] = value;
}

/** Sets a key, whatever it was before. */
export function define(target: object, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(target, key, { value, enumerable, configurable: true, writable: true });
}

/** The first symbol key of a value; a checkpoint can't hold one. */
export function symbolOf(value: object): symbol | undefined {
  return Object.getOwnPropertySymbols(value)[0];
}
