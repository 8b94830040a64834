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
