import { show } from "../errors.js";
import { makeError, setErrorField } from "./error-value.js";
import { freezeDate, freezeMap, freezeSet } from "./guards.js";
import { rememberSparse } from "./own.js";
import { below, named, Refusal } from "./refusal.js";
import { registeredInstance } from "./registered-types.js";
import {
  emptyArray,
  looksTagged,
  MAX_DEPTH,
  MAX_DIGITS,
  MAX_LENGTH,
  setKey,
  tooDeep,
} from "./shape.js";
import { isJsonNumber, OPAQUE, PLAIN, TAGGED } from "./traits.js";
import { typedArrays } from "./typed-arrays.js";

/** A value out of a checkpoint, with what is known of it. */
export interface Decoded {
  /** Frozen to the bottom. */
  readonly value: unknown;
  /** See `traits.ts`. */
  readonly traits: number;
}

/**
 * What `encode` made, back as a frozen value. It takes the tree over: pass one that nobody else
 * holds, fresh from `JSON.parse`.
 *
 * @throws SerializationError that names the path of a tag that is unknown or malformed.
 */
export function decode(tree: unknown, root: string): Decoded {
  const seen: Seen = { traits: PLAIN };
  return { value: named(root, () => decodeAt(tree, 0, seen)), traits: seen.traits };
}

interface Seen {
  traits: number;
}

type Tree = Record<string, unknown>;

function decodeAt(tree: unknown, depth: number, seen: Seen): unknown {
  if (typeof tree !== "object" || tree === null) return leaf(tree, seen);
  if (depth > MAX_DEPTH) throw new Refusal(tooDeep);
  return Array.isArray(tree)
    ? Object.freeze(decodeItems(tree, depth + 1, seen))
    : decodeObject(tree as Tree, depth, seen);
}

/** A value as JSON has it. Text of others may hold -0 and 1e400, which JSON reads but does not write. */
function leaf(value: unknown, seen: Seen): unknown {
  if (typeof value === "number" && !isJsonNumber(value)) seen.traits |= TAGGED;
  return value;
}

function decodeItems(items: unknown[], depth: number, seen: Seen): unknown[] {
  let at = 0;
  try {
    for (; at < items.length; at++) {
      const item = items[at];
      if (typeof item === "object") items[at] = decodeAt(item, depth, seen);
      else leaf(item, seen);
    }
  } catch (error) {
    throw below(error, at);
  }
  return items;
}

/**
 * An object that is a tag, or else its fields. One walk does both: the first key nearly always tells
 * that it is no tag, and `for in` is faster than the keys as an array.
 */
function decodeObject(tree: Tree, depth: number, seen: Seen): unknown {
  let at: string | undefined;
  try {
    for (const key in tree) {
      if (at === undefined && key.charCodeAt(0) === 36 && looksTagged(Object.keys(tree)))
        return decodeTag(key, tree[key], depth, seen);
      at = key;
      const item = tree[key];
      // `for in` also gives what somebody may have added to Object.prototype.
      if (typeof item !== "object" || item === null || !Object.hasOwn(tree, key)) {
        leaf(item, seen);
        continue;
      }
      const value = decodeAt(item, depth + 1, seen);
      if (value !== item) setKey(tree, key, value);
    }
  } catch (error) {
    throw at === undefined ? error : below(error, at);
  }
  return Object.freeze(tree);
}

function decodeFields(fields: Tree, depth: number, seen: Seen): Tree {
  let at = "";
  try {
    for (at of Object.keys(fields)) setKey(fields, at, decodeAt(fields[at], depth, seen));
  } catch (error) {
    throw below(error, at);
  }
  return fields;
}

function decodeTag(tag: string, content: unknown, depth: number, seen: Seen): unknown {
  seen.traits |= opaqueTags.has(tag) ? TAGGED | OPAQUE : TAGGED;
  const value = tags.get(tag)?.(content, depth + 1, seen);
  if (value !== undefined) return value;
  if (tag === "$undefined" && content === true) return undefined;
  throw new Refusal(
    tags.has(tag) || tag === "$undefined"
      ? `holds a malformed ${tag}`
      : `holds the unknown tag ${show(tag)}`,
  );
}

type DecodeTag = (content: unknown, depth: number, seen: Seen) => unknown;

const opaqueTags: ReadonlySet<string> = new Set(["$regexp", "$url", "$bytes", "$type"]);

/** Each gives `undefined` for content that it did not write. */
const tags: ReadonlyMap<string, DecodeTag> = new Map<string, DecodeTag>([
  [
    "$object",
    (content, depth, seen) =>
      isFields(content) ? Object.freeze(decodeFields(content, depth, seen)) : undefined,
  ],
  [
    "$date",
    (content) => {
      const date = new Date(typeof content === "string" ? content : Number.NaN);
      return content === null || !Number.isNaN(date.getTime()) ? freezeDate(date) : undefined;
    },
  ],
  [
    "$bigint",
    (content) =>
      typeof content === "string" && content.length <= MAX_DIGITS && /^-?\d+$/.test(content)
        ? BigInt(content)
        : undefined,
  ],
  [
    "$number",
    (content) =>
      content === "-0"
        ? -0
        : content === "NaN" || content === "Infinity" || content === "-Infinity"
          ? Number(content)
          : undefined,
  ],
  [
    "$map",
    (content, depth, seen) => {
      if (
        !Array.isArray(content) ||
        !content.every((entry) => Array.isArray(entry) && entry.length === 2)
      )
        return undefined;
      return freezeMap(new Map(decodeItems(content, depth, seen) as [unknown, unknown][]));
    },
  ],
  [
    "$set",
    (content, depth, seen) =>
      Array.isArray(content) ? freezeSet(new Set(decodeItems(content, depth, seen))) : undefined,
  ],
  ["$sparse", decodeSparse],
  [
    "$regexp",
    (content) =>
      attempt(() => {
        const [source, flags, lastIndex] = content as unknown[];
        if (!isText(source) || !isText(flags) || !Number.isInteger(lastIndex)) return undefined;
        return Object.assign(new RegExp(source, flags), { lastIndex });
      }),
  ],
  ["$url", (content) => (isText(content) ? attempt(() => new URL(content)) : undefined)],
  ["$error", decodeError],
  [
    "$type",
    (content, depth, seen) => {
      if (!Array.isArray(content) || content.length !== 2) return undefined;
      const [name, data] = content as unknown[];
      return isText(name) ? registeredInstance(name, decodeAt(data, depth, seen)) : undefined;
    },
  ],
  [
    "$bytes",
    (content) =>
      attempt(() => {
        const [type, base64] = content as unknown[];
        if (!isText(type) || !isText(base64)) return undefined;
        const bytes = fromBase64(base64);
        return type === "ArrayBuffer" ? bytes.buffer : typedArrays.get(type)?.(bytes.buffer);
      }),
  ],
]);

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}

function decodeSparse(content: unknown, depth: number, seen: Seen): unknown {
  if (!Array.isArray(content)) return undefined;
  const [length, indexes, items] = content as unknown[];
  if (!Array.isArray(indexes) || !Array.isArray(items) || indexes.length !== items.length)
    return undefined;
  if (!Number.isInteger(length) || Number(length) < 0 || Number(length) > MAX_LENGTH)
    return undefined;
  const fits = (index: unknown): boolean =>
    Number.isInteger(index) && Number(index) >= 0 && Number(index) < Number(length);
  if (!indexes.every(fits)) return undefined;
  const array = emptyArray(Number(length));
  decodeItems(items, depth, seen).forEach((item, at) => {
    array[Number(indexes[at])] = item;
  });
  return rememberSparse(Object.freeze(array));
}

function decodeError(content: unknown, depth: number, seen: Seen): unknown {
  if (!Array.isArray(content)) return undefined;
  const [type, name, message, stack, fields] = content as unknown[];
  if (!isText(type) || !isText(name) || !isText(message) || !isFields(fields)) return undefined;
  const error = makeError(type, name, message, stack);
  if (error === undefined) return undefined;
  decodeFields(fields, depth, seen);
  for (const key of Object.keys(fields)) setErrorField(error, key, fields[key]);
  return Object.freeze(error);
}

function fromBase64(text: string): { buffer: ArrayBuffer } {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
