import { ConfigError, show } from "./errors.js";

/** Throws the error of a check. The problem completes a sentence that begins with the name. */
export type Refuse = (name: string, problem: string) => never;

/**
 * Checks a value of a caller's, or with another `refuse` than the default, which throws a ConfigError, one from
 * elsewhere.
 */
export type Check = (name: string, value: unknown, refuse?: Refuse) => void;

/** A check of the value alone. */
export interface Test extends Check {
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

/** Throws a ConfigError. */
export const refuseOption: Refuse = (name, problem) => {
  throw new ConfigError(name, problem);
};

// Marked as free of side effects, so that bundlers drop the checks of what is not imported.

/** A check that throws an error with `expected` if `accepts` returns false. */
// @__NO_SIDE_EFFECTS__
export function check(expected: string, accepts: (value: unknown) => boolean): Test {
  const test: Check = (name, value, refuse = refuseOption) => {
    if (!accepts(value)) refuse(name, `must be ${expected}; got ${show(value)}`);
  };
  return Object.assign(test, { expected, accepts });
}

/** An integer ≥ `min`; also `Infinity` if `orInfinity` is set. */
// @__NO_SIDE_EFFECTS__
export function integer(min: number, orInfinity = false): Test {
  return check(
    `an integer ≥ ${min}${orInfinity ? " or Infinity" : ""}`,
    (value) =>
      (Number.isSafeInteger(value) || (orInfinity && value === Number.POSITIVE_INFINITY)) &&
      Number(value) >= min,
  );
}

/** An integer from `min` to `max`. */
// @__NO_SIDE_EFFECTS__
export function integerFrom(min: number, max: number): Test {
  return check(
    `an integer from ${min} to ${max}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  );
}

/** A number ≥ `min`, and ≤ `max` if that is given. */
// @__NO_SIDE_EFFECTS__
export function number(min: number, max = Number.POSITIVE_INFINITY): Test {
  return check(
    max === Number.POSITIVE_INFINITY ? `a number ≥ ${min}` : `a number from ${min} to ${max}`,
    (value) => typeof value === "number" && value >= min && value <= max,
  );
}

/** One of the given strings. */
// @__NO_SIDE_EFFECTS__
export function oneOf(...choices: readonly string[]): Test {
  const [last = "", ...others] = choices.map((choice) => JSON.stringify(choice)).reverse();
  const expected = others.length === 0 ? last : `${others.reverse().join(", ")} or ${last}`;
  return check(expected, (value) => typeof value === "string" && choices.includes(value));
}

/** `true` or `false`. */
export const flag: Test = check("true or false", (value) => typeof value === "boolean");

/** A string, possibly empty. */
export const string: Test = check("a string", (value) => typeof value === "string");

/** A list of strings. */
export const strings: Test = check(
  "an array of strings",
  (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
);

/** A list. */
export const list: Test = check("an array", Array.isArray);

/** A string of at least one character. */
export const text: Test = check(
  "a non-empty string",
  (value) => typeof value === "string" && value !== "",
);

/** How long something may take. */
export const duration: Test = check(
  "a number of milliseconds ≥ 0",
  (value) => typeof value === "number" && value >= 0,
);

/** A timeout. */
export const timeLimit: Test = check(
  "a number of milliseconds > 0",
  (value) => typeof value === "number" && value > 0,
);

/** An AbortSignal. */
export const abortSignal: Test = check("an AbortSignal", (value) => value instanceof AbortSignal);

/** An object with fields. */
export const object: Test = check(
  "an object",
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);

/** A function. */
export const callable: Test = check("a function", (value) => typeof value === "function");

/** Whether a value is an object with these methods. */
export function hasMethods(value: unknown, ...names: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return names.every((name) => typeof Reflect.get(value, name) === "function");
}

/**
 * Checks an options object field by field. Unknown fields are rejected, so that a misspelt option is an error
 * rather than a default; a field that is `undefined` counts as absent.
 */
export function checkOptions(
  owner: string,
  options: unknown,
  checks: Readonly<Record<string, Check>>,
  refuse: Refuse = refuseOption,
): void {
  // A Map or a Promise has no fields, so every option would silently keep its default.
  const isOther = Array.isArray(options) || options instanceof Map || options instanceof Promise;
  if (typeof options !== "object" || options === null || isOther) {
    refuse(owner, `must be an object of options; got ${show(options)}`);
  }
  for (const [name, value] of Object.entries(options)) {
    const checkOne = Object.hasOwn(checks, name) ? checks[name] : undefined;
    if (checkOne === undefined) {
      const known = Object.keys(checks).join(", ");
      refuse(`${owner}.${name}`, `is not an option; the options are ${known}`);
    } else if (value !== undefined) {
      checkOne(`${owner}.${name}`, value, refuse);
    }
  }
}

/** The maximum length of a run id. */
const MAX_RUN_ID = 200;

/**
 * Checks a caller's run id. Any text that can be typed and stored will do: a store turns it into a file name
 * or a key, never into a path.
 */
export function checkRunId(runId: unknown, refuse: Refuse = refuseOption): string {
  const got =
    typeof runId !== "string"
      ? show(runId)
      : runId === ""
        ? "an empty one"
        : runId.length > MAX_RUN_ID
          ? `${runId.length} characters`
          : // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
            /[\u0000-\u001f\u007f]/.test(runId)
            ? `a control character in ${show(runId)}`
            : /\p{Surrogate}/u.test(runId)
              ? `half a surrogate pair in ${show(runId)}`
              : undefined;
  if (typeof runId === "string" && got === undefined) return runId;
  return refuse("runId", `must be a string of 1 to ${MAX_RUN_ID} characters; got ${got}`);
}
