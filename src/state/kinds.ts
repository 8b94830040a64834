import { SerializationError, show } from "../errors.js";
import { check, checkRunId, type Refuse, string, strings, type Test } from "../options.js";
import { decode } from "./decode.js";
import { encode } from "./encode.js";
import { isBlank, isPlainObject, mapped } from "./shape.js";

/*
 * The kinds of fields that a record consists of: each knows how its values are read from untrusted JSON and written
 * to it, and which text in them is the user's.
 */

/**
 * Which text of some JSON is the user's and may hold a secret:
 *
 * - `own`: all of it, keys included;
 * - `word`: the same, but a run relies on a text being there, so that no path replaces it whole;
 * - `fixed`: none, a run relies on all of it;
 * - an object or array: that of its `fields` by name, of `each` other field or item, `own` by default. The names of
 *   other fields are the user's too, unless `fixedKeys` is set.
 */
export type UserText =
  | "own"
  | "word"
  | "fixed"
  | {
      readonly fields?: Readonly<Record<string, UserText>>;
      readonly each?: UserText;
      readonly fixedKeys?: true;
    };

/** The values of a field: `T` in a record, `J` in its JSON. */
export interface Kind<T, J = T> {
  readonly userText: UserText;
  /**
   * A value from JSON, frozen; it may be the tree itself.
   *
   * @throws SerializationError that names the path of what is wrong.
   */
  read(json: unknown, path: string, key: string): T;
  /** Its JSON; the value itself if there is no such function. */
  write?(value: T): J;
  /** Whether its JSON is not one field but several, beside those of the record; `read` gets all of them. */
  readonly isSpread?: true;
  /** Whether its field is absent if there is no value. */
  readonly isOptional?: true;
  /** The value whose field is absent from JSON. */
  readonly empty?: T;
  isEmpty?(value: T): boolean;
}

/** A kind of which nothing is known. */
export type AnyKind = Kind<unknown, unknown>;

/** The values of a kind. */
export type ValueOf<K extends AnyKind> = ReturnType<K["read"]>;

/** Their JSON. */
export type JSONValueOf<K extends AnyKind> = ReturnType<NonNullable<K["write"]>>;

/** A kind whose field is absent if there is no value. */
export interface OptionalKind<T, J = T> extends Kind<T, J> {
  readonly isOptional: true;
}

/** A kind whose field is absent from JSON if its value is empty. */
export interface DefaultKind<T, J = T> extends Kind<T, J> {
  readonly empty: T;
  isEmpty(value: T): boolean;
}

/** The kinds of an object's fields. */
export type KindsOf<T> = {
  readonly [K in keyof T]-?: Record<never, never> extends Pick<T, K>
    ? OptionalKind<Exclude<T[K], undefined>, unknown>
    : Kind<T[K], unknown>;
};

/** The fields of an object by name. */
export type Fields = Readonly<Record<string, unknown>>;

/** Throws a SerializationError. */
export const refuseJSON: Refuse = (path, problem) => {
  throw new SerializationError(path, problem);
};

/**
 * The tree of some JSON text.
 *
 * @throws SerializationError if it is none.
 */
export function treeOf(name: string, text: () => string): unknown {
  try {
    return JSON.parse(text());
  } catch (cause) {
    throw new SerializationError(name, `is not JSON: ${String(cause)}`, { cause });
  }
}

export function refuse(value: unknown, path: string, wanted: string): never {
  return refuseJSON(path, `must be ${wanted}; got ${show(value)}`);
}

/** The fields of a value that must be a plain object. */
export function fieldsOf(value: unknown, path: string): Fields {
  if (!isPlainObject(value)) {
    return refuse(value, path, "an object");
  }
  // Anything added to Object.prototype is not a field of this object.
  const isClean = Object.keys(Object.prototype).length === 0;
  return isClean ? value : Object.assign(Object.create(null) as object, value);
}

/** Values that JSON has a type for. */
export function scalar<T>(userText: UserText, { accepts, expected }: Test): Kind<T> {
  return {
    userText,
    // The path is joined only for an error.
    read: (json, path, key) =>
      accepts(json) ? (json as T) : refuse(json, `${path}.${key}`, expected),
  };
}

// The commonest kinds have functions of their own, which V8 inlines.

function readText(json: unknown, path: string, key: string): string {
  return typeof json === "string" ? json : refuse(json, `${path}.${key}`, string.expected);
}

/** Text of the user's. */
export const text: Kind<string> = { userText: "own", read: readText };

/** Text of the user's that no path replaces. */
export const word: Kind<string> = { userText: "word", read: readText };

/** Text that a run relies on: the name of a node, an id, a key by which something is found again. */
export const name: Kind<string> = { userText: "fixed", read: readText };

/** The format of `toISOString`; parsing takes much longer. */
const usualTime =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3])(:[0-5]\d){2}\.\d{3}Z$/;

function readTime(json: unknown, path: string, key: string): string {
  return typeof json === "string" && (usualTime.test(json) || !Number.isNaN(Date.parse(json)))
    ? json
    : refuse(json, `${path}.${key}`, "an ISO 8601 time");
}

/** A moment, ISO 8601. */
export const time: Kind<string> = { userText: "fixed", read: readTime };

/** The same; `""` for none. */
export const timeOrNone: Kind<string> = {
  userText: "fixed",
  read: (json, path, key) => (json === "" ? json : readTime(json, path, key)),
};

/** An integer ≥ 0. */
export const count: Kind<number> = {
  userText: "fixed",
  read: (json, path, key) =>
    typeof json === "number" && Number.isSafeInteger(json) && json >= 0
      ? json
      : refuse(json, `${path}.${key}`, "an integer ≥ 0"),
};

/** One of several texts. */
export function oneOf<const T extends string>(choices: readonly T[]): Kind<T> {
  const isOne = (value: unknown): boolean => choices.some((choice) => choice === value);
  return scalar("fixed", check(`one of ${choices.join(", ")}`, isOne));
}

/** The id of a run. */
export const runId: Kind<string> = {
  userText: "fixed",
  read: (json, path, key) =>
    checkRunId(json, (_name, problem) => refuseJSON(`${path}.${key}`, problem)),
};

/** A kind whose JSON has tags where JSON has no type for a value; `name` is its path in errors when it is written. */
export function tagged<T>(name: string, kind: Kind<T>): Kind<T, unknown> {
  return {
    userText: kind.userText,
    read: (json, path, key) => kind.read(decode(json, `${path}.${key}`).value, path, key),
    write: (given) => encode(given, name),
  };
}

/** Any value that data may hold. */
export const dataValue: Kind<unknown> = { userText: "own", read: (json) => json };

/** An object of such values. */
export const dataObject: Kind<object> = scalar(
  { each: "own" },
  check("an object", (value) => typeof value === "object" && value !== null),
);

/** A kind with the same properties as every other, which loops over kinds read faster. */
export function inOneShape(kind: AnyKind): AnyKind {
  const { userText, read, write, isSpread, isOptional, empty, isEmpty } = kind;
  return { userText, read, write, isSpread, isOptional, empty, isEmpty } as AnyKind;
}

/**
 * An object with these fields.
 *
 * @param root - its path in errors, if it has one of its own.
 */
export function object<T extends object, J = T>(kinds: KindsOf<T>, root?: string): Kind<T, J> {
  const all = Object.entries(kinds as Readonly<Record<string, AnyKind>>);
  return {
    userText: { fields: userTextsOf(kinds) },
    read: (json, path, key) => {
      const at = root ?? `${path}.${key}`;
      const tree = fieldsOf(json, at);
      const made: Record<string, unknown> = {};
      for (const [field, kind] of all) {
        const given = tree[field];
        if (given !== undefined) made[field] = kind.read(given, at, field);
        else if (kind.isEmpty) made[field] = kind.empty;
        else if (!kind.isOptional) made[field] = kind.read(given, at, field);
      }
      return Object.freeze(made) as T;
    },
    ...(all.some(([, kind]) => kind.write ?? kind.isEmpty) && {
      write: (given: T) => {
        const made: Record<string, unknown> = {};
        for (const [field, kind] of all) writeField(kind, Reflect.get(given, field), made, field);
        return made as J;
      },
    }),
  };
}

/** Which text of several fields is the user's. */
export function userTextsOf(
  kinds: Readonly<Record<string, { readonly userText: UserText }>>,
): Readonly<Record<string, UserText>> {
  return mapped(kinds, ({ userText }) => userText);
}

/**
 * Checks fields in JSON that may lack what is optional or empty.
 *
 * @throws SerializationError that names the path of what is wrong.
 */
export function checkFields(
  kinds: readonly (readonly [string, AnyKind])[],
  tree: Fields,
  path: string,
): void {
  for (const [key, kind] of kinds) {
    const given = tree[key];
    if (given !== undefined || !(kind.isOptional || kind.isEmpty)) kind.read(given, path, key);
  }
}

/** The JSON of a value. */
export function jsonOf<T, J>(kind: Kind<T, J>, value: T): J {
  return kind.write === undefined ? (value as unknown as J) : kind.write(value);
}

/** Adds a field to JSON, unless it is empty. */
export function writeField(
  kind: AnyKind,
  value: unknown,
  to: Record<string, unknown>,
  key: string,
): void {
  if (value === undefined || value === kind.empty || kind.isEmpty?.(value)) return;
  to[key] = jsonOf(kind, value);
}

/** A field that may be absent. */
export function optional<T, J>(kind: Kind<T, J>): OptionalKind<T, J> {
  return { ...kind, isOptional: true };
}

/** A field whose value may be empty. */
export function or<T, E, J>(
  kind: Kind<T, J>,
  empty: E,
  isEmpty: (value: T | E) => boolean = typeof empty === "object"
    ? (one) => isBlank(one as object)
    : (one) => one === empty,
): DefaultKind<T | E, J> {
  // What is empty is not written.
  return { ...(kind as Kind<T | E, J>), empty, isEmpty };
}

/** A list of such values. */
export function list<T, J>(
  kind: Kind<T, J>,
  expected = "an array",
): Kind<readonly T[], readonly J[]> {
  const { write } = kind;
  return {
    userText: { each: kind.userText },
    read: (json, path, key) => {
      if (!Array.isArray(json)) return refuse(json, `${path}.${key}`, expected);
      return Object.freeze(json.map((item, index) => kind.read(item, path, `${key}[${index}]`)));
    },
    ...(write && { write: (items: readonly T[]) => items.map(write) }),
  };
}

/** Such values by name. */
export function byName<T, J>(
  kind: Kind<T, J>,
): Kind<Readonly<Record<string, T>>, Readonly<Record<string, J>>> {
  const { write } = kind;
  return {
    userText: { each: kind.userText },
    read: (json, path, key) => {
      const at = `${path}.${key}`;
      return mapped(fieldsOf(json, at), (item, name) => kind.read(item, at, name));
    },
    ...(write && { write: (items: Readonly<Record<string, T>>) => mapped(items, write) }),
  };
}

/** A list of texts that a run relies on. */
export const names = list(name, strings.expected);

/** A list of the user's texts. */
export const texts = list(text, strings.expected);
