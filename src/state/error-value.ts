/**
 * Errors as values of the data. Of an error its fields, its name and the nearest of JavaScript's own
 * classes are kept; the user's class is not, because nothing in a checkpoint may name one.
 */
interface ErrorType {
  readonly prototype: Error;
  readonly make: (message: string) => Error;
}

const general: ErrorType = { prototype: Error.prototype, make: (message) => new Error(message) };

const special: readonly ErrorType[] = [
  ...[EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((Type) => ({
    prototype: Type.prototype,
    make: (message: string) => new Type(message),
  })),
  { prototype: AggregateError.prototype, make: (message) => new AggregateError([], message) },
];

/** The nearest class that JavaScript itself has. */
function typeOf(error: Error): ErrorType {
  const isAbove = Object.prototype.isPrototypeOf;
  return special.find(({ prototype }) => isAbove.call(prototype, error)) ?? general;
}

/** Its name. */
export function errorType(error: Error): string {
  return typeOf(error).prototype.name;
}

/** Whether an error is of one of JavaScript's own classes. */
export function isPlainError(error: Error): boolean {
  return Object.getPrototypeOf(error) === typeOf(error).prototype;
}

/** An error without fields yet; `undefined` when there is no such type. */
export function makeError(
  type: string,
  name: string,
  message: string,
  stack: unknown,
): Error | undefined {
  const error = [general, ...special]
    .find(({ prototype }) => prototype.name === type)
    ?.make(message);
  if (error === undefined) return undefined;
  if (error.name !== name) define(error, "name", name, false);
  define(error, "stack", typeof stack === "string" ? stack : undefined, false);
  return error;
}

/** The fields that an error has beside its message and stack, `name` too where it was set on this one. */
export function errorFields(error: Error): string[] {
  const keys = Object.keys(error).filter((key) => key !== "message" && key !== "stack");
  for (const hidden of ["cause", "errors"]) {
    if (Object.hasOwn(error, hidden) && !keys.includes(hidden)) keys.push(hidden);
  }
  return keys;
}

/** Gives an error a field; those that JavaScript itself sets are hidden, as it does. */
export function setErrorField(error: Error, key: string, value: unknown): void {
  define(error, key, value, key !== "cause" && key !== "errors");
}

function define(error: Error, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, configurable: true, writable: true });
}
