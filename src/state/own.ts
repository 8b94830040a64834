import type { Immutable } from "immer";

/**
 * A State never shares memory with its callers: what enters is copied once, frozen and remembered
 * here, and what is remembered is shared for ever after. So a value is walked once in its life, and
 * what was learnt on that walk (its traits) lets a save skip the next one.
 */
const owned = new WeakMap<object, number>();

/** JSON text holds it exactly. */
export const PLAIN = 0;
/** It is frozen, but JSON needs a tag for something in it. */
export const TAGGED = 1;
/** Something in it can't be frozen, or perhaps not saved: a buffer, an Error, a function, a class instance. */
export const OPAQUE = 2;

/** Nesting past this depth is kept as it is, and refused when it is to be saved. */
export const MAX_DEPTH = 1000;

/** Past this depth a cycle is likely enough to pay for looking out for one. */
const CYCLE_DEPTH = 64;

/** Longer arrays are not searched for named properties: it costs more than copying them. */
const SEARCHED_LENGTH = 100;

/** What is known of a value: PLAIN, or TAGGED and OPAQUE or'ed together. */
export function traitsOf(value: unknown): number {
  switch (typeof value) {
    case "string":
    case "boolean":
      return PLAIN;
    case "number":
      return isJsonNumber(value) ? PLAIN : TAGGED;
    case "undefined":
    case "bigint":
      return TAGGED;
    case "object":
      return value === null ? PLAIN : (owned.get(value) ?? OPAQUE);
    default:
      return OPAQUE;
  }
}

/** The traits of an object's values taken together. */
export function traitsOfValues(object: object): number {
  let traits = PLAIN;
  for (const value of Object.values(object)) traits |= traitsOf(value);
  return traits;
}

/** Remembers a value that is frozen to the bottom. */
export function remember<T extends object>(value: T, traits: number): T {
  owned.set(value, traits);
  return value;
}

/** Whether JSON writes a number so that it reads back the same. */
export function isJsonNumber(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0);
}

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

/** A frozen copy of a value; parts that a State owns already are shared. */
export function own<T>(value: T): Immutable<T> {
  return ownAt(value, 0, undefined) as Immutable<T>;
}

type Copies = Map<object, object>;

function ownAt(value: unknown, depth: number, above: Copies | undefined): unknown {
  if (typeof value !== "object" || value === null || owned.has(value)) return value;
  const known = above?.get(value);
  if (known !== undefined) return known;
  if (depth > MAX_DEPTH) return value;
  const copies = above ?? (depth > CYCLE_DEPTH ? new Map<object, object>() : undefined);
  if (Array.isArray(value)) return ownArray(value, depth, copies);
  if (isPlainObject(value)) return ownObject(value, depth, copies);
  return ownExotic(value, depth, copies);
}

function ownArray(value: readonly unknown[], depth: number, copies: Copies | undefined): unknown {
  if (Object.getPrototypeOf(value) !== Array.prototype) return value;
  const copy = value.slice();
  copies?.set(value, copy);
  let traits = PLAIN;
  for (let index = 0; index < copy.length; index++) {
    const item = copy[index];
    if (item === undefined && !(index in copy)) {
      traits |= TAGGED;
      continue;
    }
    const kept = ownAt(item, depth + 1, copies);
    if (kept !== item) copy[index] = kept;
    traits |= traitsOf(kept);
  }
  // A regular expression's match has named properties; they are copied so that a save can refuse them.
  if (value.length <= SEARCHED_LENGTH && Object.keys(value).length > value.length) {
    Object.assign(copy, value);
    traits |= OPAQUE;
  }
  return remember(Object.freeze(copy), traits);
}

function ownObject(
  value: Record<string, unknown>,
  depth: number,
  copies: Copies | undefined,
): unknown {
  const copy = { ...value };
  copies?.set(value, copy);
  const keys = Object.keys(copy);
  let traits = looksTagged(keys) ? TAGGED : PLAIN;
  for (const key of keys) {
    const item = copy[key];
    const kept = ownAt(item, depth + 1, copies);
    if (kept !== item) setKey(copy, key, kept);
    traits |= traitsOf(kept);
  }
  if (Object.getOwnPropertySymbols(copy).length > 0) traits |= OPAQUE;
  return remember(Object.freeze(copy), traits);
}

function ownExotic(value: object, depth: number, copies: Copies | undefined): unknown {
  switch (Object.getPrototypeOf(value)) {
    case Date.prototype:
      return remember(freezeDate(new Date((value as Date).getTime())), TAGGED);
    case Map.prototype: {
      const copy = new Map<unknown, unknown>();
      copies?.set(value, copy);
      let traits = TAGGED;
      for (const [key, item] of value as Map<unknown, unknown>) {
        const keptKey = ownAt(key, depth + 1, copies);
        const kept = ownAt(item, depth + 1, copies);
        copy.set(keptKey, kept);
        traits |= traitsOf(keptKey) | traitsOf(kept);
      }
      return remember(freezeMap(copy), traits);
    }
    case Set.prototype: {
      const copy = new Set<unknown>();
      copies?.set(value, copy);
      let traits = TAGGED;
      for (const item of value as Set<unknown>) {
        const kept = ownAt(item, depth + 1, copies);
        copy.add(kept);
        traits |= traitsOf(kept);
      }
      return remember(freezeSet(copy), traits);
    }
    case RegExp.prototype: {
      const pattern = value as RegExp;
      const copy = new RegExp(pattern.source, pattern.flags);
      copy.lastIndex = pattern.lastIndex;
      return remember(copy, OPAQUE);
    }
    case URL.prototype:
      return remember(new URL((value as URL).href), OPAQUE);
    case ArrayBuffer.prototype:
      return remember((value as ArrayBuffer).slice(0), OPAQUE);
    default:
      // Buffers can't be frozen, so at least the caller's own copy is another one.
      return isTypedArray(value) ? remember(value.slice(), OPAQUE) : value;
  }
}

/** Any of the typed arrays, and Node's Buffer. */
export type TypedArray = Uint8Array & { slice(): TypedArray };

// The constructor that all typed arrays inherit from has no name of its own.
const TypedArrayConstructor = Object.getPrototypeOf(Uint8Array) as Uint8ArrayConstructor;

/** Whether a value is a typed array of any element type. */
export function isTypedArray(value: object): value is TypedArray {
  return value instanceof TypedArrayConstructor;
}

function refuse(): never {
  throw new TypeError(
    "this value belongs to a State, which never changes: put a new value into a new State",
  );
}

const mapGuard = guardOf("set", "delete", "clear");
const setGuard = guardOf("add", "delete", "clear");
const dateGuard = guardOf(
  ...Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set")),
);

function guardOf(...methods: readonly string[]): PropertyDescriptorMap {
  return Object.fromEntries(methods.map((method) => [method, { value: refuse }]));
}

/** Freezes a Date and takes its setters away. */
export function freezeDate(date: Date): Date {
  return Object.freeze(Object.defineProperties(date, dateGuard));
}

/** Freezes a Map and takes its setters away. */
export function freezeMap<K, V>(map: Map<K, V>): Map<K, V> {
  return Object.freeze(Object.defineProperties(map, mapGuard));
}

/** Freezes a Set and takes its setters away. */
export function freezeSet<T>(set: Set<T>): Set<T> {
  return Object.freeze(Object.defineProperties(set, setGuard));
}
