import { describe, expect, test } from "vitest";
import {
  type Check,
  callable,
  check,
  checkOptions,
  flag,
  integer,
  integerFrom,
  oneOf,
  text,
} from "../src/options.js";
import { configError } from "./matchers.js";

const infinity = Number.POSITIVE_INFINITY;

test.each<[string, Check, unknown[], unknown[], string]>([
  [
    "integer(2)",
    integer(2),
    [2, 3, 2 ** 53 - 1],
    [1, 2.5, "2", Number.NaN, infinity, 2 ** 53, null, 2n],
    "an integer ≥ 2",
  ],
  [
    "integer(0, true)",
    integer(0, true),
    [0, infinity],
    [-1, -infinity, "Infinity", true],
    "an integer ≥ 0 or Infinity",
  ],
  [
    "integerFrom(1, 9)",
    integerFrom(1, 9),
    [1, 9],
    [0, 10, 1.5, infinity, "1"],
    "an integer from 1 to 9",
  ],
  [
    "oneOf",
    oneOf("warn", "error"),
    ["warn", "error"],
    ["Warn", "", 1, ["warn"]],
    '"warn" or "error"',
  ],
  ["flag", flag, [true, false], ["true", 0, null], "true or false"],
  ["text", text, ["x", " "], ["", 1, null, ["x"]], "a non-empty string"],
  ["callable", callable, [() => {}, class {}], ["x", {}, null], "a function"],
  [
    "check",
    check("an even number", (value) => Number(value) % 2 === 0),
    [2],
    [1],
    "an even number",
  ],
])("%s takes what fits and names what it got", (_, one, good, bad, expected) => {
  for (const value of good) expect(() => one("config.x", value)).not.toThrow();
  for (const value of bad) {
    expect(() => one("config.x", value)).toThrow(
      configError("config.x", /^config\.x must be .*; got ./),
    );
    expect(() => one("config.x", value)).toThrow(`config.x must be ${expected}; got `);
  }
});

describe("checkOptions", () => {
  const checks = { interval: integer(0), store: () => {} };

  test("takes options that are right, missing or undefined", () => {
    for (const options of [{}, { interval: 1 }, { interval: undefined, store: Symbol("any") }]) {
      expect(() => checkOptions("config", options, checks)).not.toThrow();
    }
  });

  test("names an option that is wrong by its whole path", () => {
    expect(() => checkOptions("config", { interval: -1 }, checks)).toThrow(
      configError("config.interval", "^config.interval must be an integer ≥ 0; got -1$"),
    );
    const nested = {
      checkpoint: (name: string, value: unknown) => checkOptions(name, value, checks),
    };
    expect(() => checkOptions("config", { checkpoint: { interval: "1" } }, nested)).toThrow(
      configError("config.checkpoint.interval", 'got "1"$'),
    );
  });

  test.each(["intervall", "toString", "constructor", "__proto__"])(
    "refuses the unknown option %s",
    (name) => {
      const options = Object.defineProperty({}, name, { value: 1, enumerable: true });
      expect(() => checkOptions("config", options, checks)).toThrow(
        configError(`config.${name}`, "is not an option; the options are interval, store$"),
      );
    },
  );

  test.each<[unknown]>([
    [null],
    [undefined],
    ["config"],
    [[]],
    [() => {}],
    [new Map()],
    [Promise.resolve()],
  ])("refuses %o", (options) => {
    expect(() => checkOptions("config", options, checks)).toThrow(
      configError("config", "^config must be an object of options; got "),
    );
  });
});
