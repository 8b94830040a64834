import { MAX_DEPTH } from "./shape.js";

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
export const LEVEL = 4;

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

/** All that is known of a value. */
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

/** The traits of an object's values taken together. */
export function traitsOfValues(object: object): number {
  let traits = Object.getOwnPropertySymbols(object).length > 0 ? OPAQUE : PLAIN;
  for (const value of Object.values(object)) traits |= traitsOf(value);
  return traits;
}

/** What is known of two values together. */
export function join(one: number, other: number): number {
  return ((one | other) & TRAITS) | (Math.max(one, other) & ~TRAITS);
}

/** Remembers a value that is frozen to the bottom, and what is known of its parts. */
export function remember<T extends object>(value: T, parts: number): T {
  const known = parts + LEVEL;
  owned.set(value, known > MAX_DEPTH * LEVEL + TRAITS ? known | OPAQUE : known);
  return value;
}

/** Whether JSON writes a number so that it reads back the same. */
export function isJsonNumber(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0);
}

/** Whether a State owns an object already. */
export function isOwned(value: object): boolean {
  return owned.has(value);
}

/** What is known of an object that a State owns; `undefined` of any other. */
export function ownedTraits(value: object): number | undefined {
  return owned.get(value);
}

/** What cannot change, such as what `decode` made, is kept as it is; of all else the frozen copy. */
export function keep(value: object, copy: object, same: boolean, parts: number): object {
  return remember(same ? value : Object.freeze(copy), parts);
}

/** Whether an object's fields are frozen; a getter of a frozen object can still tell another story each time. */
export function cannotChange(value: object): boolean {
  return (
    Object.isFrozen(value) &&
    Object.values(Object.getOwnPropertyDescriptors(value)).every((field) => "value" in field)
  );
}
