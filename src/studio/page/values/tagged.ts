import type { LargeValue, TaggedValue } from "../../api.js";
import { bytes, count } from "../format.js";

/** A key or an index. */
export type Key = string | number;

/** A value inside another. */
export interface Entry {
  /** What is shown before it. */
  readonly label: string;
  /** What leads to it in the JSON of the API, tags included. */
  readonly keys: readonly Key[];
  readonly value: TaggedValue | undefined;
}

/** A value as it is shown: one line, and what is inside it. */
export interface Shown {
  readonly kind:
    | "string"
    | "number"
    | "boolean"
    | "null"
    | "undefined"
    | "bigint"
    | "date"
    | "regexp"
    | "url"
    | "error"
    | "bytes"
    | "array"
    | "object"
    | "map"
    | "set"
    | "type"
    | "redacted"
    | "large";
  /** The value itself, or a name for what holds others: `Map(2)`. */
  readonly text: string;
  readonly entries: readonly Entry[];
  readonly large?: LargeValue;
}

type Fields = Readonly<Record<string, TaggedValue>>;

/** What is a value, by its type or its tag. */
export function shownOf(value: TaggedValue | undefined): Shown {
  if (value === undefined) return plain("undefined", "undefined");
  if (value === null) return plain("null", "null");
  if (value === "[redacted]") return plain("redacted", "redacted");
  if (typeof value === "string") return plain("string", value);
  if (typeof value === "number" || typeof value === "boolean") {
    return plain(typeof value as "number" | "boolean", String(value));
  }
  if (Array.isArray(value)) return list("array", `Array(${value.length})`, value, []);
  const fields = value as Fields;
  const keys = Object.keys(fields);
  const tag = keys.length === 1 ? (keys[0] ?? "") : "";
  const inside = fields[tag];
  const isWhole = tag === "$large" || !isFields(inside) || inside.$large === undefined;
  return (
    (isWhole && Object.hasOwn(tags, tag) ? tags[tag]?.(inside) : undefined) ?? object(fields, [])
  );
}

/** What each tag stands for; `undefined` if it does not hold what it should. */
const tags: Readonly<Record<string, (inside: TaggedValue | undefined) => Shown | undefined>> = {
  $date: (inside) => plain("date", inside === null ? "Invalid Date" : String(inside)),
  $bigint: (inside) => plain("bigint", `${String(inside)}n`),
  $number: (inside) => plain("number", String(inside)),
  $undefined: () => plain("undefined", "undefined"),
  $url: (inside) => plain("url", String(inside)),
  $regexp: (inside) => {
    const [source = "", flags = ""] = listOf(inside);
    return plain("regexp", `/${String(source)}/${String(flags)}`);
  },
  $bytes: (inside) => {
    const [type = "", base64 = ""] = listOf(inside);
    const size = byteCount(String(base64).replace(/=+$/, "").length);
    return plain("bytes", `${String(type)} ${bytes(size)} ${hexOf(String(base64))}`);
  },
  $map: (inside) =>
    Array.isArray(inside)
      ? {
          kind: "map",
          text: `Map(${inside.length})`,
          entries: inside.map((pair: TaggedValue, index) => {
            const [key, value] = listOf(pair);
            return { label: preview(key, 60), keys: ["$map", index, 1], value };
          }),
        }
      : undefined,
  $set: (inside) =>
    Array.isArray(inside) ? list("set", `Set(${inside.length})`, inside, ["$set"]) : undefined,
  $sparse: (inside) => {
    const [length, indexes, items] = listOf(inside);
    return {
      kind: "array",
      text: `Array(${String(length)})`,
      entries: listOf(indexes).map((index, at) => ({
        label: String(index),
        keys: ["$sparse", 2, at],
        value: listOf(items)[at],
      })),
    };
  },
  $error: (inside) => {
    const [type, name, message, stack, fields] = listOf(inside);
    const entries: Entry[] = [
      { label: "name", keys: ["$error", 1], value: name },
      { label: "message", keys: ["$error", 2], value: message },
      { label: "stack", keys: ["$error", 3], value: stack },
    ];
    const more = isFields(fields) ? Object.entries(fields) : [];
    return {
      kind: "error",
      text: `${String(name ?? type)}: ${String(message)}`,
      entries: [
        ...entries.filter(({ value }) => value !== null && value !== undefined),
        ...more.map(([key, value]) => ({ label: key, keys: ["$error", 4, key], value })),
      ],
    };
  },
  $type: (inside) => {
    const [name, value] = listOf(inside);
    return {
      kind: "type",
      text: String(name),
      entries: [{ label: "value", keys: ["$type", 1], value }],
    };
  },
  $object: (inside) => (isFields(inside) ? object(inside, ["$object"]) : undefined),
  $large: (inside) => {
    if (!isFields(inside)) return undefined;
    const large = inside as unknown as LargeValue;
    return { kind: "large", text: large.kind, entries: [], large };
  },
};

function plain(kind: Shown["kind"], text: string): Shown {
  return { kind, text, entries: [] };
}

function list(
  kind: "array" | "set",
  text: string,
  items: readonly TaggedValue[],
  before: readonly Key[],
): Shown {
  const entries = items.map((value, index) => ({
    label: String(index),
    keys: [...before, index],
    value,
  }));
  return { kind, text, entries };
}

function object(fields: Fields, before: readonly Key[]): Shown {
  const entries = Object.entries(fields).map(([label, value]) => ({
    label,
    keys: [...before, label],
    value,
  }));
  return { kind: "object", text: entries.length === 0 ? "{}" : `{${entries.length}}`, entries };
}

function listOf(value: TaggedValue | undefined): readonly TaggedValue[] {
  return Array.isArray(value) ? value : [];
}

function isFields(value: TaggedValue | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How many bytes so many characters of base64 stand for. */
function byteCount(characters: number): number {
  return Math.floor((characters * 3) / 4);
}

/** The first bytes, in hexadecimal. */
function hexOf(base64: string): string {
  const hex = allHexOf(base64.slice(0, 24));
  return base64.length > 24 ? `${hex} …` : hex;
}

function allHexOf(base64: string): string {
  try {
    const hex = (byte: string): string => byte.charCodeAt(0).toString(16).padStart(2, "0");
    return [...atob(base64)].map(hex).join(" ");
  } catch {
    return "";
  }
}

/** A piece of a long text, or of many bytes in hexadecimal; `undefined` if the value is neither. */
export function textOf(piece: TaggedValue): string | undefined {
  if (typeof piece === "string") return piece;
  const base64 = isFields(piece) ? listOf(piece.$bytes)[1] : undefined;
  return typeof base64 === "string" ? `${allHexOf(base64)} ` : undefined;
}

/** What a value is that is fetched on demand: `array of 20,000, 230 KB`. */
export function shapeOf({ kind, length, size }: LargeValue): string {
  if (kind === "bytes") return `bytes, ${bytes(byteCount(length))}`;
  return `${kind} of ${count(length)}, ${bytes(size)}`;
}

/** Characters that change the order or the look of what is around them, or are not seen at all. */
const unseen = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text in quotes, with what can't be seen as escapes. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    unseen,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A value in one line of at most so many characters. */
export function preview(value: TaggedValue | undefined, most = 80): string {
  const { kind, text, entries, large } = shownOf(value);
  if (kind === "string") return cut(quoted(text), most);
  if (kind === "redacted") return "[redacted]";
  if (large !== undefined) return shapeOf(large);
  if (entries.length === 0) return cut(text, most);
  if (kind === "error" || kind === "type") return cut(text, most);
  const isList = kind === "array" || kind === "set";
  const parts: string[] = [];
  let length = 0;
  for (const { label, value: inner } of entries.slice(0, 8)) {
    const part = isList ? preview(inner, 24) : `${label}: ${preview(inner, 24)}`;
    length += part.length + 2;
    if (length > most) break;
    parts.push(part);
  }
  if (parts.length < entries.length) parts.push("…");
  const inner = parts.join(", ");
  const name = kind === "map" || kind === "set" ? `${text} ` : "";
  return cut(isList ? `${name}[${inner}]` : `${name}{ ${inner} }`, most + 24);
}

/** The beginning of a text, if it is longer than so many characters. */
export function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
