import { ConfigError, SerializationError, show } from "../errors.js";
import { checkRunId } from "./run-id.js";
import { isPlainObject } from "./shape.js";

/*
 * Reads the fields of an untrusted object one by one: each function gives the value that it was
 * given, or refuses it by its path.
 */

/** The fields of an object, by their names. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an object, if it is one. */
export function fieldsOf(value: unknown, path: string): Fields {
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    return refuse(value, path, "an object");
  }
  // What somebody may have added to Object.prototype is no field of this one.
  const isClean = Object.keys(Object.prototype).length === 0;
  return isClean ? value : Object.assign(Object.create(null) as object, value);
}

/** The fields of an object as `read` reads them, frozen; nothing where there is none. */
export function readOptional<T>(
  value: unknown,
  path: string,
  read: (fields: Fields, path: string) => T,
): T | undefined {
  return value === undefined ? undefined : Object.freeze(read(fieldsOf(value, path), path));
}

const none: readonly never[] = Object.freeze([]);

/** The same for each item of a list; an empty one where there is none. */
export function readList<T>(
  value: unknown,
  path: string,
  read: (fields: Fields, path: string) => T,
): readonly T[] {
  if (value === undefined) return none;
  if (!Array.isArray(value)) return refuse(value, path, "an array");
  const items = value.map((item, index) => {
    const at = `${path}[${index}]`;
    return Object.freeze(read(fieldsOf(item, at), at));
  });
  return Object.freeze(items);
}

export function readText(value: unknown, path: string): string {
  return typeof value === "string" ? value : refuse(value, path, "a string");
}

export function readOneOf<T extends string>(
  value: unknown,
  path: string,
  choices: readonly T[],
): T {
  const found = choices.find((choice) => choice === value);
  return found ?? refuse(value, path, `one of ${choices.join(", ")}`);
}

export function readRunId(value: unknown, path: string): string {
  try {
    return checkRunId(value);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    throw new SerializationError(path, `can't be one: ${cause.message}`, { cause });
  }
}

/** What `toISOString` gives; to look at it is seven times as fast as to parse it. */
const usualTime =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

export function readTime(value: unknown, path: string): string {
  return typeof value === "string" && (usualTime.test(value) || !Number.isNaN(Date.parse(value)))
    ? value
    : refuse(value, path, "an ISO 8601 time");
}

export function readInteger(value: unknown, path: string, min: number): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= min
    ? value
    : refuse(value, path, `an integer ≥ ${min}`);
}

export function refuse(value: unknown, path: string, wanted: string): never {
  throw new SerializationError(path, `must be ${wanted}; got ${show(value)}`);
}
