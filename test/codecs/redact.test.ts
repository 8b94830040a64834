import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { REDACTED, redact, redactor } from "waymark/codecs";
import { stateData } from "../arbitraries.js";
import { configError } from "../matchers.js";

const value = {
  apiKey: "k",
  data: { apiKey: "k", user: { token: "t", name: "ada", Tokens: 3 } },
  list: [{ token: "t" }, "text"],
};

describe("redact", () => {
  test.each<[string, unknown]>([
    ["apiKey", { ...value, apiKey: REDACTED }],
    ["data.apiKey", { ...value, data: { ...value.data, apiKey: REDACTED } }],
    ["DATA.APIKEY", { ...value, data: { ...value.data, apiKey: REDACTED } }],
    ["data", { ...value, data: REDACTED }],
    ["data.*", { ...value, data: { apiKey: REDACTED, user: REDACTED } }],
    ["*.apiKey", { ...value, apiKey: REDACTED, data: { ...value.data, apiKey: REDACTED } }],
    ["**.apiKey", { ...value, apiKey: REDACTED, data: { ...value.data, apiKey: REDACTED } }],
    ["*", { apiKey: REDACTED, data: REDACTED, list: REDACTED }],
    ["list.0.token", { ...value, list: [{ token: REDACTED }, "text"] }],
    ["list.*.token", { ...value, list: [{ token: REDACTED }, "text"] }],
    ["list.1", { ...value, list: [{ token: "t" }, REDACTED] }],
    [
      "data.*.token*",
      {
        ...value,
        data: { ...value.data, user: { token: REDACTED, name: "ada", Tokens: REDACTED } },
      },
    ],
    ["*.n*m*", { ...value, data: { ...value.data, user: { ...value.data.user, name: REDACTED } } }],
    ["*.*ame", { ...value, data: { ...value.data, user: { ...value.data.user, name: REDACTED } } }],
    ["token", value],
    ["data.token", value],
    ["data.*.apiKey", value],
    ["apiKe", value],
    ["apiKey.x", value],
    ["*.na*am*me", value],
  ])("%s", (pattern, expected) => {
    expect(redact(value, [pattern])).toEqual(expected);
  });

  test("takes several patterns, or none", () => {
    expect(redact(value, ["apiKey", "data"])).toEqual({
      ...value,
      apiKey: REDACTED,
      data: REDACTED,
    });
    expect(redact(value, [])).toBe(value);
  });

  test("shares what it does not change, and never changes what it is given", () => {
    const frozen = Object.freeze({ a: Object.freeze({ token: 1 }), b: Object.freeze({ c: [1] }) });
    const shown = redact(frozen, ["*.token"]) as typeof frozen;
    expect(shown).toEqual({ a: { token: REDACTED }, b: { c: [1] } });
    expect(shown.b).toBe(frozen.b);
    expect(frozen.a.token).toBe(1);
    expect(redact(frozen, ["*.password"])).toBe(frozen);
  });

  test("leaves every value as it is that no pattern fits", () => {
    fc.assert(
      fc.property(stateData, (data) => {
        expect(redact(data, ["*.no-such-key"])).toBe(data);
      }),
    );
  });

  test("looks into Maps, Sets and instances", () => {
    class Session {
      readonly token = "t";
      readonly user = "ada";
    }
    const map = new Map<unknown, unknown>([
      ["token", "t"],
      [{ token: "t" }, 1],
      [2, { token: "t" }],
    ]);
    expect(redact(map, ["*.token"])).toEqual(
      new Map<unknown, unknown>([
        ["token", REDACTED],
        [{ token: REDACTED }, 1],
        [2, { token: REDACTED }],
      ]),
    );
    expect(redact(new Set([{ token: "t" }, 5]), ["*.token"])).toEqual(
      new Set([{ token: REDACTED }, 5]),
    );
    const shown = redact({ s: Object.freeze(new Session()) }, ["*.token"]) as { s: Session };
    expect(shown.s).toBeInstanceOf(Session);
    expect(shown.s).toEqual({ token: REDACTED, user: "ada" });
  });

  test("looks into Errors: fields, cause and message, which their stack repeats", () => {
    const cause = Object.assign(new TypeError("password is hunter2"), { token: "t" });
    const shown = redact({ error: new Error("outer", { cause }) }, ["*.token", "*.cause.message"]);
    const error = Reflect.get(shown as object, "error") as Error;
    expect(error).toBeInstanceOf(Error);
    expect(error.message).toBe("outer");
    expect(error.cause).toMatchObject({ message: REDACTED, stack: REDACTED, token: REDACTED });
    expect(inspect(shown)).not.toContain("hunter2");
    expect(cause.message).toBe("password is hunter2");
  });

  test("keeps a key of a JSON object that is called __proto__ what it is", () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"token":"t"},"a":1}');
    const shown = redact(hostile, ["*.token"]) as object;
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"token":"[redacted]"},"a":1}');
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
  });

  test("ends on what contains itself, and on what is very deep", () => {
    const cycle: Record<string, unknown> = { token: "t", list: [] };
    cycle.self = cycle;
    expect(redact(cycle, ["*.token"])).toEqual({ token: REDACTED, list: [], self: "[circular]" });
    let deep: unknown = { token: "t" };
    for (let level = 0; level < 100_000; level++) deep = { deep };
    expect(JSON.stringify(redact(deep, ["*.token"]))).toMatch(
      /^(\{"deep":){1000}"\[redacted\]"\}+$/,
    );
  });

  test("takes no longer for patterns and keys that are made to be slow", () => {
    const long = "a".repeat(10_000);
    const pattern = `${"*.a.".repeat(50)}${"*a".repeat(50)}b`;
    let deep: unknown = { [long]: 1 };
    for (let level = 0; level < 900; level++) deep = { a: deep };
    const started = performance.now();
    redact(deep, [pattern]);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  test("leaves what is no object as it is", () => {
    for (const one of [undefined, null, 1, "token", true, Symbol.iterator]) {
      expect(redact(one, ["*.token"])).toBe(one);
    }
    const bytes = new Uint8Array(4);
    expect(redact(bytes, ["*.0"])).toBe(bytes);
  });

  test("compiles its patterns once as a redactor", () => {
    const hide = redactor(["*.token"]);
    expect(hide({ token: 1 })).toEqual({ token: REDACTED });
    expect(hide([{ token: 2 }])).toEqual([{ token: REDACTED }]);
  });

  test.each<[unknown, string, string]>([
    ["*.token", "patterns", "wants an array of patterns"],
    [[5], "patterns[0]", "got 5"],
    [["a", ""], "patterns[1]", "wants keys joined by dots"],
    [["a."], "patterns[0]", "wants keys joined by dots"],
  ])("refuses %j", (patterns, option, message) => {
    expect(() => redact({}, patterns as string[])).toThrow(configError(option, message));
  });
});
