import { inspect } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { type AnyEvent, consoleObserver, State, StateGraph } from "waymark";
import { REDACTED, redact, redactEvents, redactor } from "waymark/codecs";
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

  test("does not change values that no pattern matches", () => {
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

  test("redacts a State as a store would, wherever it is", () => {
    const login = new Map([["token", "t0p"]]);
    const state = State.create({ apiKey: "k3y", at: new Date(0), login });
    for (const value of [state, { state }, [state]]) {
      const shown = redact(value, ["data.apiKey", "*.token"]);
      for (const text of [JSON.stringify(shown), inspect(shown, { depth: 9 })]) {
        expect(text).not.toMatch(/k3y|t0p/);
        expect(text).toContain("1970-01-01");
      }
    }
    expect(redact(state, ["data.nothing"])).toBe(state);
    const unsaveable = State.create({ token: "t", f: () => 1 });
    expect(redact({ unsaveable }, ["*.token"])).toEqual({ unsaveable: REDACTED });
  });

  test("searches what an object's toJSON returns, and its fields", () => {
    class Request {
      readonly token = "t0p";
      readonly #key = "k3y";
      toJSON(): object {
        return { headers: { authorization: this.#key } };
      }
    }
    const request = new Request();
    const told = redact({ request }, ["*.authorization"]);
    expect(told).toEqual({ request: { headers: { authorization: REDACTED } } });
    const shown = redact({ request }, ["*.token"]) as { request: Request };
    expect(shown.request).toBeInstanceOf(Request);
    expect(shown.request.token).toBe(REDACTED);
    const self = { toJSON: () => self, token: "t" };
    expect(redact({ self }, ["*.token"])).toMatchObject({ self: { token: REDACTED } });
  });

  test("redacts what an expression matches in every text", () => {
    const value = {
      say: "sk-1 and sk-2",
      list: ["sk-3", new Map([["sk-key", new Set(["sk-4"])]])],
      error: new Error("no sk-5", { cause: "sk-6" }),
      count: 7,
    };
    for (const pattern of [/sk-\d/, /SK-\d/i, /sk-\d/gy]) {
      expect(inspect(redact(value, [pattern]), { depth: 9 })).not.toMatch(/sk-\d/);
    }
    expect(redact(value, [/sk-\d/, "count"])).toMatchObject({
      say: "[redacted] and [redacted]",
      list: [REDACTED, new Map([["sk-key", new Set([REDACTED])]])],
      error: { message: "no [redacted]" },
      count: REDACTED,
    });
    expect(redact(value, [/nothing/])).toBe(value);
    expect(redact("sk-1", [/sk-\d/])).toBe(REDACTED);
  });

  test("keeps a key of a JSON object that is called __proto__ what it is", () => {
    const hostile: unknown = JSON.parse('{"__proto__":{"token":"t"},"a":1}');
    const shown = redact(hostile, ["*.token"]) as object;
    expect(JSON.stringify(shown)).toBe('{"__proto__":{"token":"[redacted]"},"a":1}');
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
  });

  test("handles cyclic and very deep values", () => {
    const cycle: Record<string, unknown> = { token: "t", list: [] };
    cycle.self = cycle;
    expect(redact(cycle, ["*.token"])).toEqual({ token: REDACTED, list: [], self: "[circular]" });
    let deep: unknown = { token: "t" };
    for (let level = 0; level < 100_000; level++) deep = { deep };
    expect(JSON.stringify(redact(deep, ["*.token"]))).toMatch(
      /^(\{"deep":){1000}"\[redacted\]"\}+$/,
    );
  });

  test("takes no longer for patterns and keys that are designed to be slow", () => {
    const long = "a".repeat(10_000);
    const pattern = `${"*.a.".repeat(50)}${"*a".repeat(50)}b`;
    let deep: unknown = { [long]: 1 };
    for (let level = 0; level < 900; level++) deep = { a: deep };
    const started = performance.now();
    redact(deep, [pattern]);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  test("does not change what is not an object", () => {
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
    ["*.token", "patterns", "must be an array of paths and expressions"],
    [[5], "patterns[0]", "got 5"],
    [["a", ""], "patterns[1]", "must be keys joined by dots"],
    [["a."], "patterns[0]", "must be keys joined by dots"],
  ])("refuses %j", (patterns, option, message) => {
    expect(() => redact({}, patterns as string[])).toThrow(configError(option, message));
  });
});

describe("redactEvents", () => {
  test("passes events to an observer without their secrets, function or object", async () => {
    const seen: AnyEvent[] = [];
    const print = vi.spyOn(console, "info").mockImplementation(() => {});
    const patterns = ["rationale", /sk-\w+/];
    const graph = new StateGraph<{ n: number }>({
      observer: [
        redactEvents((event) => seen.push(event), patterns),
        redactEvents({ onEvent: (event) => seen.push(event) }, patterns),
        redactEvents(consoleObserver(), patterns),
      ],
    })
      .addNode("one", (_state, { ledger }) => {
        ledger.decision({ description: "call with sk-1234", rationale: "t0p" });
        return { n: 1 };
      })
      .setEntryPoint("one")
      .setExitPoint("one");
    const final = await graph.execute(State.create({ n: 0 }));
    expect(final.ledger.decisions[0]?.rationale).toBe("t0p");
    const told = seen.filter(({ type }) => type === "decision").map(({ data }) => data);
    expect(told).toHaveLength(2);
    for (const data of told) {
      expect(data).toMatchObject({ description: "call with [redacted]", rationale: REDACTED });
    }
    expect(print.mock.calls.join("\n")).toContain("call with [redacted]");
    expect(print.mock.calls.join("\n")).not.toMatch(/sk-1234|t0p/);
    print.mockRestore();
    expect(() => redactEvents(() => {}, "x" as never)).toThrow(configError("patterns", "must be"));
  });
});
