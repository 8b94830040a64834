import { show } from "../../errors.js";
import { cannotChange, join, keep, knownOf, TAGGED } from "../json-traits.js";
import { below, Refusal } from "../refusal.js";
import { define, isFields } from "../shape.js";
import { type Kind, malformed } from "./kind.js";

type ErrorType = new (message: string) => Error;

/** The built-in classes; the last is above all others. */
const types: readonly ErrorType[] = [
  ...[EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError],
  ...[AggregateError, Error],
];

/**
 * Keeps an error's fields, its name and the nearest built-in class. The user's class is not kept, because
 * nothing in a checkpoint may name one; it is dropped as soon as the error enters a State, so that a run sees
 * the same before and after a resume. Only a registered class stays.
 */
export const errorKind: Kind<Error> = {
  tag: "$error",
  is: (value) => value instanceof Error,
  copy: (value, walk, depth) => {
    const { name, message } = value;
    if (typeof name !== "string" || typeof message !== "string") return value;
    // Only now: some engines build the stack's text when it is read, and fail if the message is not a string.
    const type = typeOf(value);
    const copy = make(type, name, message, value.stack);
    walk.begin(value, copy);
    let known = TAGGED;
    let same = Object.getPrototypeOf(value) === type.prototype && cannotChange(value);
    for (const key of keysOf(value)) {
      const item: unknown = Reflect.get(value, key);
      const kept = walk.copy(item, depth + 1);
      setField(copy, key, kept);
      same &&= Object.is(kept, item);
      known = join(known, knownOf(kept));
    }
    return keep(value, copy, same, known);
  },
  encode: (value, walk) => {
    const { name, message } = value;
    for (const [key, part] of Object.entries<unknown>({ name, message })) {
      if (typeof part === "string") continue;
      throw below(new Refusal(`is ${show(part)}: that of an Error must be a string`), key);
    }
    const fields = walk.fields(value, keysOf(value));
    const { stack } = value;
    const trace = typeof stack === "string" ? stack : null;
    return { $error: [typeOf(value).name, name, message, trace, fields] };
  },
  decode: (content, walk, depth) => {
    if (!Array.isArray(content)) return malformed;
    const [typeName, name, message, stack, fields] = content as unknown[];
    const type = types.find(({ name }) => name === typeName);
    if (type === undefined || typeof name !== "string") return malformed;
    if (typeof message !== "string" || !isFields(fields)) return malformed;
    const error = make(type, name, message, stack);
    walk.fields(fields, depth);
    for (const key of Object.keys(fields)) setField(error, key, fields[key]);
    return Object.freeze(error);
  },
};

/** The nearest built-in class. */
function typeOf(error: Error): ErrorType {
  return types.find((type) => error instanceof type) ?? Error;
}

/** An error without fields yet. */
function make(type: ErrorType, name: string, message: string, stack: unknown): Error {
  const error = type === AggregateError ? new AggregateError([], message) : new type(message);
  if (error.name !== name) define(error, "name", name, false);
  define(error, "stack", typeof stack === "string" ? stack : undefined, false);
  return error;
}

/** The fields of an error besides its message and stack, including `name` if it was set on this instance. */
function keysOf(error: Error): string[] {
  const keys = Object.keys(error).filter((key) => key !== "message" && key !== "stack");
  return keys.concat(hidden.filter((key) => Object.hasOwn(error, key) && !keys.includes(key)));
}

/** The fields that are not enumerable, as JavaScript sets them. */
const hidden = ["cause", "errors"];

function setField(error: Error, key: string, value: unknown): void {
  define(error, key, value, !hidden.includes(key));
}
