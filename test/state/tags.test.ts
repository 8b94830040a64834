import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { serializationError } from "../matchers.js";

const empty = State.create({}).toJSON();

function loadData(data: unknown): unknown {
  return State.fromJSON({ ...empty, data }).data;
}

describe("data out of JSON", () => {
  test.each<[unknown]>([
    [undefined],
    [null],
    ["text"],
    [[]],
    [{ $map: [] }],
    [{ $undefined: true }],
    [{ $date: null }],
  ])("%j is not data", (data) => {
    expect(() => loadData(data)).toThrow(
      serializationError("state.data", "must be an object; got"),
    );
  });

  test.each<[unknown]>([
    [{ $nonsense: 1 }],
    [{ $: 1 }],
    [{ $constructor: "Function" }],
    [{ $toString: 1 }],
  ])("the unknown tag in %j is refused", (tagged) => {
    expect(() => loadData(tagged)).toThrow(serializationError("data", "holds the unknown tag"));
    expect(() => loadData({ a: [tagged] })).toThrow(serializationError("data.a[0]", "unknown tag"));
    expect(() => loadData({ m: { $map: [[1, tagged]] } })).toThrow(
      serializationError("data.m[0][1]", "unknown tag"),
    );
  });

  test.each<[string, unknown[]]>([
    ["$undefined", [false, null]],
    ["$object", [null, 1, []]],
    ["$date", [5, "yesterday", true, []]],
    ["$bigint", [5, "", "0x1", "1.5", "1n", "--1"]],
    ["$number", [5, "1", "Nan", null]],
    ["$map", [null, {}, [1], [[1]], [[1, 2, 3]], ["ab"]]],
    ["$set", [null, {}, "ab"]],
    [
      "$sparse",
      [
        null,
        [],
        [1, [0]],
        [2, [0], []],
        [-1, [], []],
        [2 ** 32, [], []],
        [1.5, [], []],
        [2, [2], [0]],
        [2, [0.5], [0]],
        [2, ["0"], [0]],
        [2, [-1], [0]],
      ],
    ],
    ["$regexp", [null, "ag", ["(", "", 0], ["a", "zz", 0], ["a", "g"], [1, "", 0], ["a", 1, 0]]],
    ["$url", [null, "no url", 5, ["https://example.org"]]],
    [
      "$bytes",
      [
        null,
        ["Uint8Array", "?"],
        ["Uint8Array", 1234],
        ["Nonsense", ""],
        ["Int16Array", "AA=="],
        [1, ""],
      ],
    ],
    [
      "$error",
      [
        null,
        ["Error", "Error", "no", null],
        ["Error", 1, "no", null, {}],
        ["Error", "Error", 1, null, {}],
        ["Error", "Error", "no", null, []],
        ["Function", "Error", "no", null, {}],
        [1, "Error", "no", null, {}],
      ],
    ],
  ])("a malformed %s is refused", (tag, contents) => {
    for (const content of contents) {
      expect(() => loadData({ a: { b: { [tag]: content } } })).toThrow(
        serializationError("data.a.b", `holds a malformed \\${tag}$`),
      );
    }
  });

  test.each<[unknown, string]>([
    [{ $set: [0, { $bad: 1 }] }, "data.v[1]"],
    [{ $object: { $date: { $bad: 1 } } }, "data.v.$date"],
    [{ $error: ["Error", "Error", "no", null, { cause: { $bad: 1 } }] }, "data.v.cause"],
  ])("what is wrong inside %j is named", (v, path) => {
    expect(() => loadData({ v })).toThrow(serializationError(path, "unknown tag"));
  });

  test("a __proto__ in it is a key like others, at every level", () => {
    const evil = '{"__proto__":{"polluted":true}}';
    for (const part of [evil, `{"$object":${evil}}`, `{"$map":[[1,${evil}]]}`]) {
      const text = JSON.stringify({ ...empty, data: { part: 0 } }).replace(
        '"part":0',
        `"part":${part}`,
      );
      const { data } = State.fromJSON<{ part: unknown }>(text);
      const inner = data.part instanceof Map ? data.part.get(1) : data.part;
      expect(Object.keys(inner)).toEqual(["__proto__"]);
      expect(Object.getPrototypeOf(inner)).toBe(Object.prototype);
    }
    const text = JSON.stringify(empty).replace('"data":{}', `"data":${evil}`);
    expect(Object.keys(State.fromJSON(text).data)).toEqual(["__proto__"]);
    const error = { $error: ["Error", "Error", "no", null, JSON.parse(evil)] };
    const { e } = loadData({ e: error }) as { e: Error };
    expect(Object.getPrototypeOf(e)).toBe(Error.prototype);
    expect({}).not.toHaveProperty("polluted");
  });

  test("what fromJSON was given is not held on to, and not changed", () => {
    const json = { ...empty, data: { list: [1] } };
    const state = State.fromJSON<{ list: number[] }>(json);
    json.data.list.push(2);
    expect(state.data.list).toEqual([1]);
    expect(Object.isFrozen(json.data.list)).toBe(false);
  });

  test("data that came in is deeply frozen", () => {
    const { a } = loadData({ a: [{ $map: [["k", { $date: null }]] }] }) as {
      a: [Map<string, Date>];
    };
    expect(Object.isFrozen(a) && Object.isFrozen(a[0])).toBe(true);
    expect(() => a[0].set("k", new Date())).toThrow("belongs to a State");
    expect(() => a[0].get("k")?.setTime(0)).toThrow("belongs to a State");
  });
});
