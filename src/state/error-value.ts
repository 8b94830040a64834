/**
 * Errors as values of the data. Of an error its fields, its name and the nearest of JavaScript's own
 * classes are kept; the user's class is not, because nothing in a checkpoint may name one.
 */
const types: ReadonlyMap<string, ErrorConstructor> = new Map<string, ErrorConstructor>([
  ["EvalError", EvalError],
  ["RangeError", RangeError],
  ["ReferenceError", ReferenceError],
  ["SyntaxError", SyntaxError],
  ["TypeError", TypeError],
  ["URIError", URIError],
  ["Error", Error],
]);

/** The name of the nearest class that JavaScript itself has. */
export function errorType(error: Error): string {
  if (error instanceof AggregateError) return "AggregateError";
  return [...types].find(([, type]) => error instanceof type)?.[0] ?? "Error";
}

/** Whether an error is of one of JavaScript's own classes, with a name and a message that are text. */
export function isPlainError(error: Error): boolean {
  const type = errorType(error) === "AggregateError" ? AggregateError : types.get(errorType(error));
  return (
    Object.getPrototypeOf(error) === type?.prototype &&
    typeof error.name === "string" &&
    typeof error.message === "string"
  );
}

/** An error without fields yet; `undefined` when there is no such type. */
export function makeError(
  type: string,
  name: string,
  message: string,
  stack: unknown,
): Error | undefined {
  const known = types.get(type);
  const error =
    type === "AggregateError" ? new AggregateError([], message) : known && new known(message);
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
