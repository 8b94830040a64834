import type { Immutable } from "immer";
import { errorFields, errorType, isPlainError, makeError, setErrorField } from "./error-value.js";
import { freezeDate, freezeMap, freezeSet, isGuarded } from "./guards.js";
import { isOverflow } from "./refusal.js";
import { isRegistered } from "./registered-types.js";
import { typedArrayName } from "./typed-arrays.js";

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
/** Something in it can't be frozen, or perhaps not saved: a buffer, a function, a class instance, too deep a nest. */
export const OPAQUE = 2;

const TRAITS = TAGGED | OPAQUE;

/** What is remembered of a value: its traits, and above those bits how many levels it has. */
const LEVEL = 4;

/** Nesting past this depth is kept as it is, and refused when it is to be saved. */
export const MAX_DEPTH = 1000;

/** What is said of that. */
export const tooDeep = `is nested more than ${MAX_DEPTH} levels deep`;

/** An array this long is kept as it is, and refused when it is to be saved: a sparse one can be long at no cost. */
export const MAX_LENGTH = 2 ** 24;

/** A bigint longer than this takes so long to read that it is refused. */
export const MAX_DIGITS = 100_000;

/** Past this depth a cycle is likely enough to pay for looking out for one, from the top again. */
const CYCLE_DEPTH = 64;

/** Thrown inside when that depth is reached. */
const perhapsCycle = Symbol("perhaps a cycle");

/** Longer arrays are not searched for named properties: it costs more than copying them. */
const SEARCHED_LENGTH = 100;

/** Longer arrays are looked at whether they are mostly holes, which then cost nothing. */
const SPARSE_LENGTH = 10_000;

/** What is known of a value: PLAIN, or TAGGED and OPAQUE or'ed together. */
export function traitsOf(value: unknown): number {
  return knownOf(value) & TRAITS;
}

/** Whether JSON text holds a value exactly, also when it is this deep in other values. */
export function isPlain(value: unknown, depth: number): boolean {
  const known = knownOf(value);
  return (known & TRAITS) === PLAIN && depth + known / LEVEL <= MAX_DEPTH + 1;
}

/** Whether nothing in a value can change, and it can be saved at this depth. */
export function isSettled(value: object, depth: number): boolean {
  const known = knownOf(value);
  return (known & OPAQUE) === 0 && depth + known / LEVEL <= MAX_DEPTH + 1;
}

function knownOf(value: unknown): number {
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
  let traits = Object.getOwnPropertySymbols(object).length > 0 ? OPAQUE : PLAIN;
  for (const value of Object.values(object)) traits |= traitsOf(value);
  return traits;
}

/** What is known of two values together. */
function join(one: number, other: number): number {
  return ((one | other) & TRAITS) | (Math.max(one, other) & ~TRAITS);
}

/** Remembers a value that is frozen to the bottom, and what is known of its parts. */
function remember<T extends object>(value: T, parts: number): T {
  const known = parts + LEVEL;
  owned.set(value, known > MAX_DEPTH * LEVEL + TRAITS ? known | OPAQUE : known);
  return value;
}

/** Whether JSON writes a number so that it reads back the same. */
function isJsonNumber(value: number): boolean {
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

/**
 * A frozen copy of a value; parts that a State owns already, or that can't change, are shared.
 *
 * @param before - what a State has had in its place: of what is the same there, nothing is looked up.
 */
export function own<T>(value: T, before?: unknown): Immutable<T> {
  if (typeof value !== "object" || value === null) return value as Immutable<T>;
  try {
    return ownAt(value, 0, undefined, before) as Immutable<T>;
  } catch (error) {
    return (error === perhapsCycle ? ownDeep(value) : unlessDeep(error, value)) as Immutable<T>;
  }
}

function ownDeep(value: object): unknown {
  try {
    return ownAt(value, 0, new Map());
  } catch (error) {
    return unlessDeep(error, value);
  }
}

/** What is too deep for the stack is kept as it is, like what is too deep for a checkpoint. */
function unlessDeep(error: unknown, value: object): unknown {
  if (isOverflow(error)) return value;
  throw error;
}

type Copies = Map<object, object>;

function ownAt(
  value: unknown,
  depth: number,
  copies: Copies | undefined,
  before?: unknown,
): unknown {
  if (typeof value !== "object" || value === null || owned.has(value)) return value;
  const copied = copies?.get(value);
  if (copied !== undefined) return copied;
  if (depth > CYCLE_DEPTH && copies === undefined) throw perhapsCycle;
  if (depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) return ownArray(value, depth, copies, before);
  if (isPlainObject(value)) return ownObject(value, depth, copies, before);
  return ownExotic(value, depth, copies);
}

function ownArray(
  value: readonly unknown[],
  depth: number,
  copies: Copies | undefined,
  before: unknown,
): unknown {
  if (Object.getPrototypeOf(value) !== Array.prototype || value.length > MAX_LENGTH) return value;
  if (symbolOf(value) !== undefined) return value;
  if (value.length > SPARSE_LENGTH && isSparse(value)) return ownSparse(value, depth, copies);
  const copy = value.slice();
  copies?.set(value, copy);
  const past = listOf(before);
  let known = past === none ? PLAIN : knownOf(past) - LEVEL;
  let items = copy.length;
  let same = Object.isFrozen(value);
  for (let index = 0; index < copy.length; index++) {
    const item = copy[index];
    if (index < past.length && Object.is(item, past[index])) continue;
    if (item === undefined && !(index in copy)) {
      known |= TAGGED;
      items--;
      continue;
    }
    const parts = typeof item === "object" && item !== null ? owned.get(item) : undefined;
    if (parts !== undefined) {
      known = join(known, parts);
      continue;
    }
    const kept = ownAt(item, depth + 1, copies, past[index]);
    if (!Object.is(kept, item)) {
      copy[index] = kept;
      same = false;
    }
    known = join(known, knownOf(kept));
  }
  // A regular expression's match has named properties; they are copied so that a save can refuse them.
  if (value.length <= SEARCHED_LENGTH && Object.keys(value).length > items) {
    for (const name of Object.keys(value).slice(items)) {
      setKey(copy, name, ownAt(Reflect.get(value, name), depth + 1, copies));
    }
    known |= OPAQUE;
    same = false;
  }
  return keep(value, copy, same, known);
}

const none: readonly unknown[] = [];

/**
 * The list before, if it is one of plain JSON. Of a long list that was changed in one place all items
 * but one are found in it, and what is known of it holds for them.
 */
function listOf(before: unknown): readonly unknown[] {
  return Array.isArray(before) && traitsOf(before) === PLAIN ? before : none;
}

/** Whether an array looks mostly empty. */
function isSparse(value: readonly unknown[]): boolean {
  let found = 0;
  for (let at = 0; at < value.length; at += value.length >> 5) if (at in value) found++;
  return found < 8;
}

function ownSparse(value: readonly unknown[], depth: number, copies: Copies | undefined): unknown {
  const copy = emptyArray(value.length);
  copies?.set(value, copy);
  let known = TAGGED;
  let same = Object.isFrozen(value);
  for (const key of Object.keys(value)) {
    const item: unknown = Reflect.get(value, key);
    const kept = ownAt(item, depth + 1, copies);
    setKey(copy, key, kept);
    same &&= Object.is(kept, item);
    known = join(known, knownOf(kept));
    if (!isIndex(key, value.length)) known |= OPAQUE;
  }
  return keep(value, copy, same, known);
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

/** Remembers an array whose holes were not to be walked; it and its items must be frozen. */
export function rememberSparse(array: readonly unknown[]): readonly unknown[] {
  let known = TAGGED;
  for (const item of Object.values(array)) known = join(known, knownOf(own(item)));
  return remember(array, known);
}

function ownObject(
  value: Record<string, unknown>,
  depth: number,
  copies: Copies | undefined,
  before: unknown,
): unknown {
  const copy = { ...value };
  copies?.set(value, copy);
  const keys = Object.keys(copy);
  let known = looksTagged(keys) ? TAGGED : PLAIN;
  let same = Object.getPrototypeOf(value) === Object.prototype && cannotChange(value);
  // A getter of something else must not be called.
  const past = traitsOf(before) === PLAIN ? (before as Record<string, unknown> | null) : undefined;
  for (const key of keys) {
    const item = copy[key];
    const kept = ownAt(item, depth + 1, copies, past?.[key]);
    if (!Object.is(kept, item)) {
      setKey(copy, key, kept);
      same = false;
    }
    known = join(known, knownOf(kept));
  }
  if (symbolOf(copy) !== undefined) known |= OPAQUE;
  return keep(value, copy, same, known);
}

/** What cannot change, such as what `decode` made, is shared as it is; all else is copied. */
function keep(value: object, copy: object, same: boolean, known: number): object {
  return remember(same ? value : Object.freeze(copy), known);
}

/** Whether an object's fields are frozen; a getter of a frozen object can still tell another story each time. */
function cannotChange(value: object): boolean {
  return (
    Object.isFrozen(value) &&
    Object.values(Object.getOwnPropertyDescriptors(value)).every((field) => "value" in field)
  );
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

function ownExotic(value: object, depth: number, copies: Copies | undefined): unknown {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (fieldOf(value, prototype) !== undefined || symbolOf(value) !== undefined) return value;
  switch (prototype) {
    case Date.prototype: {
      const date = value as Date;
      return remember(isGuarded(date, "setTime") ? date : freezeDate(new Date(date)), TAGGED);
    }
    case Map.prototype: {
      const copy = new Map<unknown, unknown>();
      copies?.set(value, copy);
      let known = TAGGED;
      let same = isGuarded(value, "set");
      for (const [key, item] of value as Map<unknown, unknown>) {
        const keptKey = ownAt(key, depth + 2, copies);
        const kept = ownAt(item, depth + 2, copies);
        copy.set(keptKey, kept);
        same &&= Object.is(keptKey, key) && Object.is(kept, item);
        known = join(known, join(knownOf(keptKey), knownOf(kept)));
      }
      // In JSON the entries are a level of their own.
      return keep(value, freezeMap(copy), same, known + LEVEL);
    }
    case Set.prototype: {
      const copy = new Set<unknown>();
      copies?.set(value, copy);
      let known = TAGGED;
      let same = isGuarded(value, "add");
      for (const item of value as Set<unknown>) {
        const kept = ownAt(item, depth + 1, copies);
        copy.add(kept);
        same &&= Object.is(kept, item);
        known = join(known, knownOf(kept));
      }
      return keep(value, freezeSet(copy), same, known);
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
      return ownBytes(value, ArrayBuffer.prototype.slice);
    default:
      if (value instanceof Error) return ownError(value, depth, copies);
      return typedArrayName(value) === undefined ? value : ownBytes(value, sliceBytes);
  }
}

/** Buffers can't be frozen, so at least the caller's own copy is another one. */
function ownBytes(value: object, slice: (start: number) => object): object {
  try {
    return remember(slice.call(value, 0), OPAQUE);
  } catch {
    // Its bytes were given to somebody else. A save refuses it.
    return value;
  }
}

/**
 * An error of the user's own class becomes at once what it would come back as, so that a run sees
 * the same before and after a resume. Only a class that was registered stays.
 */
function ownError(value: Error, depth: number, copies: Copies | undefined): unknown {
  const { name, message, stack } = value;
  if (typeof name !== "string" || typeof message !== "string") return value;
  if (isRegistered(Object.getPrototypeOf(value))) return value;
  const copy = makeError(errorType(value), name, message, stack) as Error;
  copies?.set(value, copy);
  let known = TAGGED;
  let same = isPlainError(value) && cannotChange(value);
  for (const key of errorFields(value)) {
    const item: unknown = Reflect.get(value, key);
    const kept = ownAt(item, depth + 1, copies);
    setErrorField(copy, key, kept);
    same &&= Object.is(kept, item);
    known = join(known, knownOf(kept));
  }
  return keep(value, copy, same, known);
}

// Not its own `slice`: that of Node's Buffer copies nothing.
const sliceBytes: (start: number) => object = Uint8Array.prototype.slice;
