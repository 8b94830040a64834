import { show } from "../errors.js";
import {
  freezeDate,
  freezeMap,
  freezeSet,
  looksTagged,
  MAX_DEPTH,
  OPAQUE,
  PLAIN,
  setKey,
  TAGGED,
} from "./own.js";
import { below, named, Refusal, tooDeep } from "./refusal.js";
import { typedArrays } from "./typed-arrays.js";

/** A value out of a checkpoint, with what is known of it. */
export interface Decoded {
  /** Frozen to the bottom. */
  readonly value: unknown;
  /** See `own.ts`. */
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

function decodeAt(tree: unknown, depth: number, seen: Seen): unknown {
  if (typeof tree !== "object" || tree === null) return tree;
  if (depth > MAX_DEPTH) throw new Refusal(tooDeep);
  if (Array.isArray(tree)) return Object.freeze(decodeItems(tree, depth + 1, seen));
  const keys = Object.keys(tree);
  const first = keys[0];
  if (first !== undefined && looksTagged(keys))
    return decodeTag(first, Reflect.get(tree, first), depth, seen);
  return Object.freeze(decodeFields(tree, keys, depth + 1, seen));
}

function decodeItems(items: unknown[], depth: number, seen: Seen): unknown[] {
  let at = 0;
  try {
    for (; at < items.length; at++) {
      const item = items[at];
      if (typeof item === "object") items[at] = decodeAt(item, depth, seen);
    }
  } catch (error) {
    throw below(error, at);
  }
  return items;
}

function decodeFields<T extends object>(
  fields: T,
  keys: readonly string[],
  depth: number,
  seen: Seen,
): T {
  let at = "";
  try {
    for (const key of keys) {
      at = key;
      const item: unknown = Reflect.get(fields, key);
      if (typeof item !== "object") continue;
      const value = decodeAt(item, depth, seen);
      if (value !== item) setKey(fields, key, value);
    }
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

const opaqueTags: ReadonlySet<string> = new Set(["$regexp", "$url", "$error", "$bytes"]);

/** Each gives `undefined` for content that it did not write. */
const tags: ReadonlyMap<string, DecodeTag> = new Map<string, DecodeTag>([
  [
    "$object",
    (content, depth, seen) =>
      isFields(content)
        ? Object.freeze(decodeFields(content, Object.keys(content), depth, seen))
        : undefined,
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
      typeof content === "string" && /^-?\d+$/.test(content) ? BigInt(content) : undefined,
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
        const [source, flags, lastIndex] = content as [string, string, number];
        return Object.assign(new RegExp(source, flags), { lastIndex });
      }),
  ],
  ["$url", (content) => attempt(() => new URL(content as string))],
  ["$error", decodeError],
  [
    "$bytes",
    (content) =>
      attempt(() => {
        const [type, base64] = content as [string, string];
        const bytes = fromBase64(base64);
        return type === "ArrayBuffer" ? bytes.buffer : typedArrays.get(type)?.(bytes.buffer);
      }),
  ],
]);

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
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
  if (!Number.isInteger(length) || Number(length) < 0 || Number(length) > 2 ** 32 - 1)
    return undefined;
  const fits = (index: unknown): boolean =>
    Number.isInteger(index) && Number(index) >= 0 && Number(index) < Number(length);
  if (!indexes.every(fits)) return undefined;
  const array: unknown[] = [];
  array.length = Number(length);
  decodeItems(items, depth, seen).forEach((item, at) => {
    array[Number(indexes[at])] = item;
  });
  return Object.freeze(array);
}

const errorTypes: ReadonlyMap<string, ErrorConstructor> = new Map<string, ErrorConstructor>([
  ["EvalError", EvalError],
  ["RangeError", RangeError],
  ["ReferenceError", ReferenceError],
  ["SyntaxError", SyntaxError],
  ["TypeError", TypeError],
  ["URIError", URIError],
]);

function decodeError(content: unknown, depth: number, seen: Seen): unknown {
  if (!Array.isArray(content)) return undefined;
  const [name, message, stack, fields] = content as unknown[];
  if (typeof name !== "string" || typeof message !== "string" || !isFields(fields))
    return undefined;
  const error =
    name === "AggregateError"
      ? new AggregateError([], message)
      : new (errorTypes.get(name) ?? Error)(message);
  const set = (key: string, value: unknown, enumerable: boolean): void => {
    Object.defineProperty(error, key, { value, enumerable, configurable: true, writable: true });
  };
  if (error.name !== name) set("name", name, false);
  set("stack", typeof stack === "string" ? stack : undefined, false);
  const keys = Object.keys(fields);
  decodeFields(fields, keys, depth, seen);
  for (const key of keys) set(key, Reflect.get(fields, key), key !== "cause" && key !== "errors");
  return error;
}

function fromBase64(text: string): { buffer: ArrayBuffer } {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
