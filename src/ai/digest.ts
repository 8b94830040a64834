import { createHash } from "node:crypto";

/** Identifies the input of a call. */
export interface Digest {
  /** The hash of the whole input. */
  readonly hash: string;
  /** The hashes of the inputs that this one continues: the same settings, with fewer messages. */
  readonly prefixes: ReadonlySet<string>;
}

/** Hashes the settings of a call, then its messages one by one. */
export function digestOf(settings: unknown, messages: readonly unknown[]): Digest {
  const prefixes = new Set<string>();
  let hash = sha(canonicalText(settings));
  for (const message of messages) {
    prefixes.add(hash);
    hash = sha(`${hash} ${canonicalText(message)}`);
  }
  return { hash, prefixes };
}

const LENGTH = 32;

function sha(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex").slice(0, LENGTH);
}

/** A value as text: the same for equal values, whatever the order of their keys. */
function canonicalText(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "bigint":
      return `${value}n`;
    case "object":
      return value === null ? "null" : canonicalObject(value);
    case "function":
    case "symbol":
      return "undefined";
    default:
      return String(value);
  }
}

function canonicalObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(canonicalText).join()}]`;
  if (ArrayBuffer.isView(value)) {
    return `bytes ${sha(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))}`;
  }
  if (value instanceof ArrayBuffer) return `bytes ${sha(new Uint8Array(value))}`;
  if (value instanceof Map) return `Map${canonicalText([...value])}`;
  if (value instanceof Set) return `Set${canonicalText([...value])}`;
  if (value instanceof RegExp) return `RegExp ${value}`;
  if (value instanceof Error) return `Error ${canonicalText([value.name, value.message])}`;
  // Date and URL, among others.
  if ("toJSON" in value && typeof value.toJSON === "function") {
    return `JSON ${canonicalText(value.toJSON())}`;
  }
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalText(field)}`);
  return `{${fields.join()}}`;
}
