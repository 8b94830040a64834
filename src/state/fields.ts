import { ConfigError, SerializationError, show } from "../errors.js";
import { checkRunId } from "./run-id.js";
import { isPlainObject } from "./shape.js";

/*
 * Reads the fields of an untrusted object one by one: each function returns the value of a field, or throws
 * an error that names its path.
 */

/** The fields of an object by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a value that must be a plain object. */
export function fieldsOf(value: unknown, path: string): Fields {
  if (typeof value !== "object" || value === null || !isPlainObject(value)) {
    return refuse(value, path, "an object");
  }
  // Anything added to Object.prototype is not a field of this object.
  const isClean = Object.keys(Object.prototype).length === 0;
  return isClean ? value : Object.assign(Object.create(null) as object, value);
}

/** An object field as read by `read`, frozen; `undefined` if it is absent. */
export function readOptional<T>(
  fields: Fields,
  name: string,
  path: string,
  read: (fields: Fields, path: string) => T,
): T | undefined {
  const value = fields[name];
  if (value === undefined) return undefined;
  const at = `${path}.${name}`;
  return Object.freeze(read(fieldsOf(value, at), at));
}

const none: readonly never[] = Object.freeze([]);

/** The same for each item of a list; empty if the field is absent. */
export function readList<T>(
  fields: Fields,
  name: string,
  path: string,
  read: (fields: Fields, path: string) => T,
): readonly T[] {
  const value = fields[name];
  if (value === undefined) return none;
  if (!Array.isArray(value)) return refuse(value, `${path}.${name}`, "an array");
  const items = value.map((item, index) => {
    const at = `${path}.${name}[${index}]`;
    return Object.freeze(read(fieldsOf(item, at), at));
  });
  return Object.freeze(items);
}

export function readText(fields: Fields, name: string, path: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : refuse(value, `${path}.${name}`, "a string");
}

export function readOneOf<T extends string>(
  fields: Fields,
  name: string,
  path: string,
  choices: readonly T[],
): T {
  const found = choices.find((choice) => choice === fields[name]);
  return found ?? refuse(fields[name], `${path}.${name}`, `one of ${choices.join(", ")}`);
}

export function readRunId(fields: Fields, name: string, path: string): string {
  try {
    return checkRunId(fields[name]);
  } catch (cause) {
    if (!(cause instanceof ConfigError)) throw cause;
    const problem = `can't be one: ${cause.message}`;
    throw new SerializationError(`${path}.${name}`, problem, { cause });
  }
}

/** The format of `toISOString`; matching it is seven times as fast as parsing. */
const usualTime =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

export function readTime(fields: Fields, name: string, path: string): string {
  const value = fields[name];
  return typeof value === "string" && (usualTime.test(value) || !Number.isNaN(Date.parse(value)))
    ? value
    : refuse(value, `${path}.${name}`, "an ISO 8601 time");
}

export function readInteger(fields: Fields, name: string, path: string, min: number): number {
  const value = fields[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= min
    ? value
    : refuse(value, `${path}.${name}`, `an integer ≥ ${min}`);
}

/** An integer that is omitted when it is 0. */
export function readCount(fields: Fields, name: string, path: string): number {
  return fields[name] === undefined ? 0 : readInteger(fields, name, path, 0);
}

export function refuse(value: unknown, path: string, wanted: string): never {
  throw new SerializationError(path, `must be ${wanted}; got ${show(value)}`);
}
