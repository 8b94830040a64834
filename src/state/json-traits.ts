import { MAX_DEPTH } from "./shape.js";

/**
 * A State never shares memory with its callers: a value that enters is copied once, frozen and remembered
 * here, and is shared from then on. So each value is walked once, and what that walk found (its traits) lets
 * a save skip the next.
 */
const owned = new WeakMap<object, number>();

/** JSON text holds it exactly. */
export const PLAIN = 0;
/** It is frozen, but JSON needs a tag for something in it. */
export const TAGGED = 1;
/**
 * Something in it can't be frozen, or perhaps not saved: a buffer, a function, a class instance, too much
 * nesting.
 */
export const OPAQUE = 2;

const TRAITS = TAGGED | OPAQUE;

/** What is remembered about a value: its traits and, in the bits above, its number of nesting levels. */
export const LEVEL = 4;

/** The traits of a value: PLAIN, or TAGGED and OPAQUE or'ed together. */
export function traitsOf(value: unknown): number {
  return knownOf(value) & TRAITS;
}

/** Whether JSON text holds a value exactly when it is nested this deep. */
export function isPlain(value: unknown, depth: number): boolean {
  const known = knownOf(value);
  return (known & TRAITS) === PLAIN && depth + known / LEVEL <= MAX_DEPTH + 1;
}

/** Whether nothing in a value can change and it can be saved at this depth. */
export function isSettled(value: object, depth: number): boolean {
  const known = knownOf(value);
  return (known & OPAQUE) === 0 && depth + known / LEVEL <= MAX_DEPTH + 1;
}

/** The traits and levels of a value. */
export function knownOf(value: unknown): number {
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

/** The combined traits of an object's values. */
export function traitsOfValues(object: object): number {
  let traits = Object.getOwnPropertySymbols(object).length > 0 ? OPAQUE : PLAIN;
  for (const value of Object.values(object)) traits |= traitsOf(value);
  return traits;
}

/** The combined traits and levels of two values. */
export function join(one: number, other: number): number {
  return ((one | other) & TRAITS) | (Math.max(one, other) & ~TRAITS);
}

/** Remembers a deeply frozen value, with what is known about its parts. */
export function remember<T extends object>(value: T, parts: number): T {
  const known = parts + LEVEL;
  owned.set(value, known > MAX_DEPTH * LEVEL + TRAITS ? known | OPAQUE : known);
  return value;
}

/** Whether a number survives JSON unchanged. */
export function isJsonNumber(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0);
}

/** The traits and levels of an object that a State owns; `undefined` for any other. */
export function ownedTraits(value: object): number | undefined {
  return owned.get(value);
}

/** Remembers the value itself if it can't change, such as a result of `decode`; otherwise its frozen copy. */
export function keep(value: object, copy: object, same: boolean, parts: number): object {
  return remember(same ? value : Object.freeze(copy), parts);
}

/** Whether an object's fields can't change; a getter of a frozen object can still return something else each time. */
export function cannotChange(value: object): boolean {
  return (
    Object.isFrozen(value) &&
    Object.values(Object.getOwnPropertyDescriptors(value)).every((field) => "value" in field)
  );
}
