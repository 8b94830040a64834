import type { Immutable } from "immer";
import { errorFields, errorType, isPlainError, makeError, setErrorField } from "./error-value.js";
import { freezeDate, freezeMap, freezeSet, isGuarded } from "./guards.js";
import { isOverflow } from "./refusal.js";
import { isRegistered } from "./registered-types.js";
import {
  emptyArray,
  fieldOf,
  isIndex,
  isPlainObject,
  looksTagged,
  MAX_DEPTH,
  MAX_LENGTH,
  setKey,
  symbolOf,
} from "./shape.js";
import {
  isOwned,
  join,
  knownOf,
  LEVEL,
  OPAQUE,
  ownedTraits,
  PLAIN,
  remember,
  TAGGED,
  traitsOf,
} from "./traits.js";
import { typedArrayName } from "./typed-arrays.js";

/** Past this depth a cycle is likely enough to pay for looking out for one, from the top again. */
const CYCLE_DEPTH = 64;

/** Thrown inside when that depth is reached. */
const perhapsCycle = Symbol("perhaps a cycle");

/** Longer arrays are not searched for named properties: it costs more than copying them. */
const SEARCHED_LENGTH = 100;

/** Longer arrays are looked at whether they are mostly holes, which then cost nothing. */
const SPARSE_LENGTH = 10_000;

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
  if (typeof value !== "object" || value === null || isOwned(value)) return value;
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
    const parts = typeof item === "object" && item !== null ? ownedTraits(item) : undefined;
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
  const { name, message } = value;
  if (typeof name !== "string" || typeof message !== "string") return value;
  if (isRegistered(Object.getPrototypeOf(value))) return value;
  // Not before: some engines put the stack's text together when it is read, and fail at such a message.
  const copy = makeError(errorType(value), name, message, value.stack) as Error;
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
