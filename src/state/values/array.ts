import { show } from "../../errors.js";
import {
  join,
  keep,
  knownOf,
  LEVEL,
  OPAQUE,
  ownedTraits,
  PLAIN,
  remember,
  TAGGED,
  traitsOf,
} from "../json-traits.js";
import { Refusal } from "../refusal.js";
import { setKey, symbolOf } from "../shape.js";
import { type CopyWalk, type EncodeWalk, type Kind, malformed } from "./kind.js";

/** A longer array is kept as it is, and rejected by a save: a sparse array can be very long at no cost. */
const MAX_LENGTH = 2 ** 24;

/** Longer arrays are not searched for named properties, which would cost more than copying them. */
const SEARCHED_LENGTH = 100;

/** Longer arrays are checked for being mostly holes, which then cost nothing. */
const SPARSE_LENGTH = 10_000;

const none: readonly unknown[] = [];

/** A frozen copy of an array; its prototype must be Array's. */
export function copyArray(
  value: readonly unknown[],
  walk: CopyWalk,
  depth: number,
  before: unknown,
): unknown {
  if (value.length > MAX_LENGTH || symbolOf(value) !== undefined) return value;
  if (value.length > SPARSE_LENGTH && isSparse(value)) return copySparse(value, walk, depth);
  const copy = value.slice();
  walk.begin(value, copy);
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
    const kept = walk.copy(item, depth + 1, past[index]);
    if (!Object.is(kept, item)) {
      copy[index] = kept;
      same = false;
    }
    known = join(known, knownOf(kept));
  }
  // A RegExp match, for example, has named properties; they are copied so that a save can reject them.
  if (value.length <= SEARCHED_LENGTH && Object.keys(value).length > items) {
    for (const name of Object.keys(value).slice(items)) {
      setKey(copy, name, walk.copy(Reflect.get(value, name), depth + 1));
    }
    known |= OPAQUE;
    same = false;
  }
  return keep(value, copy, same, known);
}

/**
 * The previous value, if it is an array of plain JSON. If a long array changed in one place, all other items
 * are found in it, and what is known about it holds for them.
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

function copySparse(value: readonly unknown[], walk: CopyWalk, depth: number): unknown {
  const copy = emptyArray(value.length);
  walk.begin(value, copy);
  let known = TAGGED;
  let same = Object.isFrozen(value);
  for (const key of Object.keys(value)) {
    const item: unknown = Reflect.get(value, key);
    const kept = walk.copy(item, depth + 1);
    setKey(copy, key, kept);
    same &&= Object.is(kept, item);
    known = join(known, knownOf(kept));
    if (!isIndex(key, value.length)) known |= OPAQUE;
  }
  return keep(value, copy, same, known);
}

function encodeArray(value: readonly unknown[], walk: EncodeWalk): unknown {
  if (value.length > MAX_LENGTH) {
    throw new Refusal(
      `is an array of ${value.length} items: a checkpoint holds up to ${MAX_LENGTH}`,
    );
  }
  const keys = Object.keys(value);
  const name = keys.find((key) => !isIndex(key, value.length));
  if (name !== undefined) {
    throw new Refusal(`is an array with the key ${show(name)}: copy it into a plain array`);
  }
  if (keys.length === value.length) return walk.items(value);
  const indexes = keys.map(Number);
  return { $sparse: [value.length, indexes, walk.items(Object.values(value), indexes)] };
}

/** Arrays; one with holes gets a tag. */
export const sparseKind: Kind<readonly unknown[]> = {
  tag: "$sparse",
  encode: encodeArray,
  decode: (content, walk, depth) => {
    if (!Array.isArray(content)) return malformed;
    const [length, indexes, items] = content as unknown[];
    if (!isCount(length, MAX_LENGTH + 1)) return malformed;
    if (!Array.isArray(indexes) || !Array.isArray(items)) return malformed;
    if (indexes.length !== items.length) return malformed;
    if (!indexes.every((index) => isCount(index, length))) return malformed;
    const array = emptyArray(length);
    let known = TAGGED;
    walk.items(items, depth).forEach((item, at) => {
      array[Number(indexes[at])] = item;
      known = join(known, walk.known(item));
    });
    // Remembered, so that its holes are not walked again.
    return remember(Object.freeze(array), known);
  },
};

function isCount(value: unknown, end: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value < end;
}

/** An array of nothing but holes, which take no memory however long it is. */
function emptyArray(length: number): unknown[] {
  const array: unknown[] = [];
  // Setting the last item first keeps the engine from allocating the rest.
  if (length > 0) array[length - 1] = undefined;
  Reflect.deleteProperty(array, length - 1);
  return array;
}

/** Whether a key of an array names one of its items. */
function isIndex(key: string, length: number): boolean {
  return String(Number(key)) === key && Number(key) < length;
}
