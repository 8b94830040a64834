import { ConfigError, show } from "./errors.js";

/** Checks one option; throws a ConfigError that names it. */
export type Check = (name: string, value: unknown) => void;

/** A check that says what it wants when `accepts` says no. */
export function check(wants: string, accepts: (value: unknown) => boolean): Check {
  return (name, value) => {
    if (!accepts(value)) throw new ConfigError(name, `wants ${wants}, got ${show(value)}`);
  };
}

/** A whole number from `min` up; `Infinity` only where it is said. */
export function integer(min: number, orInfinity = false): Check {
  const wants = `a whole number from ${min} up${orInfinity ? ", or Infinity" : ""}`;
  return check(
    wants,
    (value) =>
      (Number.isSafeInteger(value) || (orInfinity && value === Number.POSITIVE_INFINITY)) &&
      Number(value) >= min,
  );
}

/** One of the given strings. */
export function oneOf(...choices: readonly string[]): Check {
  const wants = choices.map((choice) => JSON.stringify(choice)).join(" or ");
  return check(wants, (value) => typeof value === "string" && choices.includes(value));
}

/** `true` or `false`. */
export const flag: Check = check("true or false", (value) => typeof value === "boolean");

/** A string of at least one character. */
export const text: Check = check(
  "a string that is not empty",
  (value) => typeof value === "string" && value !== "",
);

/** How long something may take. */
export const duration: Check = check(
  "a number of milliseconds from 0 up",
  (value) => typeof value === "number" && value >= 0,
);

/** A function. */
export const callable: Check = check("a function", (value) => typeof value === "function");

/**
 * Checks an options object field by field. Unknown fields are refused, so that a misspelt option
 * is an error and not a default; a field that is `undefined` counts as absent.
 */
export function checkOptions(
  owner: string,
  options: unknown,
  checks: Readonly<Record<string, Check>>,
): void {
  // A Map and a Promise have no fields: all that was meant to be in them would be left at its default.
  const isOther = Array.isArray(options) || options instanceof Map || options instanceof Promise;
  if (typeof options !== "object" || options === null || isOther) {
    throw new ConfigError(owner, `wants an object of options, got ${show(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    const checkOne = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (checkOne === undefined) {
      const known = Object.keys(checks).join(", ");
      throw new ConfigError(`${owner}.${name}`, `is not an option; the options are ${known}`);
    }
    if (value !== undefined) checkOne(`${owner}.${name}`, value);
  }
}
