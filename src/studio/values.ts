import { looksTagged, setKey } from "../state/shape.js";
import type { LargeValue, StateMatches, TaggedValue, ValueView } from "./api.js";

/** A value whose JSON is at most this long is sent whole. */
const WHOLE = 65_536;
/** Of a larger one, the parts whose JSON is at most this long. */
const PART = 4096;
/** How many items or entries are sent at once. */
const ENTRIES = 200;
/** How many characters are sent at once; a multiple of 4, so that base64 can be cut too. */
const TEXT = 65_536;
const MATCHES = 200;

type Path = readonly (string | number)[];
type Entry = readonly [key: string | number, value: unknown];

/** What a value of tagged JSON is, and how to send it in parts. */
interface Anatomy {
  readonly kind: LargeValue["kind"];
  readonly length: number;
  /** A part of it, with large values replaced by `$large`. */
  slice?(from: number): unknown;
}

/** A value of tagged JSON, with large values replaced by `$large`. */
export function bounded(tree: unknown, room = WHOLE): TaggedValue {
  if (sizeOf(tree) <= room) return tree as TaggedValue;
  const { slice, kind, length } = anatomy(tree);
  const isSmall = room > PART && length <= ENTRIES && kind !== "string" && kind !== "bytes";
  return (isSmall && slice !== undefined ? slice(0) : large(tree)) as TaggedValue;
}

/** The value at a path of tagged JSON, starting at an item or character; `undefined` if there is none. */
export function viewOf(root: unknown, path: Path, from: number): ValueView | undefined {
  let tree = root;
  for (const key of path) {
    if (typeof tree !== "object" || tree === null || !Object.hasOwn(tree, key)) return undefined;
    tree = Reflect.get(tree, key);
  }
  const { length, slice, kind } = anatomy(tree);
  if (slice === undefined || (from === 0 && sizeOf(tree) <= WHOLE)) {
    return { path, value: tree as TaggedValue, length, from: 0 };
  }
  const end = from + (kind === "string" || kind === "bytes" ? TEXT : ENTRIES);
  const value = slice(from) as TaggedValue;
  return { path, value, length, from, ...(end < length && { next: end }) };
}

/** Finds a text in the keys and values of tagged JSON. */
export function matchesIn(root: unknown, text: string): StateMatches {
  const wanted = text.toLowerCase();
  const has = (value: unknown): boolean => String(value).toLowerCase().includes(wanted);
  const matches: { path: Path; value: TaggedValue }[] = [];
  // Not recursive: data may be deep.
  const waiting: { path: Path; value: unknown }[] = [{ path: [], value: root }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, value } = next;
    const isLeaf = typeof value !== "object" || value === null;
    const key = path.at(-1);
    const isNamed = typeof key === "string" && !key.startsWith("$") && has(key);
    if (isNamed || (isLeaf && has(value))) {
      if (matches.length === MATCHES) return { matches, more: true };
      matches.push({ path, value: bounded(value, PART) });
    }
    if (isLeaf) continue;
    const inside = entriesOf(value).map(([at, item]) => ({ path: [...path, at], value: item }));
    for (const one of inside.reverse()) waiting.push(one);
  }
  return { matches, more: false };
}

function large(tree: unknown): TaggedValue {
  const { kind, length } = anatomy(tree);
  return { $large: { kind, length, size: sizeOf(tree) } };
}

function anatomy(tree: unknown): Anatomy {
  if (typeof tree === "string") return textAnatomy("string", tree, (part) => part);
  if (typeof tree !== "object" || tree === null) return { kind: "other", length: 1 };
  if (Array.isArray(tree)) return listOf("array", tree, (part) => part);
  const keys = Object.keys(tree);
  const tag = looksTagged(keys) ? keys[0] : undefined;
  const content: unknown = tag === undefined ? undefined : Reflect.get(tree, tag);
  if ((tag === "$map" || tag === "$set") && Array.isArray(content)) {
    return listOf(tag === "$map" ? "map" : "set", content, (part) => ({ [tag]: part }));
  }
  if (tag === "$bytes" && Array.isArray(content)) {
    const [type, base64] = content as readonly unknown[];
    return textAnatomy("bytes", String(base64), (part) => ({ $bytes: [type, part] }));
  }
  const kind = tag === undefined ? "object" : "other";
  const slice = (from: number): object => {
    const part = {};
    for (const key of keys.slice(from, from + ENTRIES)) {
      setKey(part, key, bounded(Reflect.get(tree, key), PART));
    }
    return part;
  };
  return { kind, length: keys.length, slice };
}

function textAnatomy(
  kind: LargeValue["kind"],
  text: string,
  wrap: (part: string) => unknown,
): Anatomy {
  return { kind, length: text.length, slice: (from) => wrap(text.slice(from, from + TEXT)) };
}

function listOf(
  kind: LargeValue["kind"],
  items: readonly unknown[],
  wrap: (part: readonly unknown[]) => unknown,
): Anatomy {
  const isEntry = kind === "map";
  // An entry of a Map stays a pair; its key and its value are bounded separately.
  const cut = (item: unknown): unknown =>
    isEntry && Array.isArray(item) ? item.map((part) => bounded(part, PART)) : bounded(item, PART);
  return {
    kind,
    length: items.length,
    slice: (from) => wrap(items.slice(from, from + ENTRIES).map(cut)),
  };
}

function entriesOf(value: object): Entry[] {
  return Array.isArray(value) ? [...value.entries()] : Object.entries(value);
}

function sizeOf(tree: unknown): number {
  return JSON.stringify(tree)?.length ?? 0;
}
