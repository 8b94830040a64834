import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { State } from "waymark";
import { jsonData, stateData } from "../arbitraries.js";

interface Value {
  readonly value: unknown;
}

function roundTrip<T>(value: T): T {
  return State.fromJSON<{ value: T }>(JSON.stringify(State.create({ value }))).data.value as T;
}

function sparse(): unknown[] {
  const array: unknown[] = [];
  array[2] = "two";
  array[4] = undefined;
  array.length = 7;
  return array;
}

function named<E extends Error>(error: E, name: string): E {
  error.name = name;
  return error;
}

const values: readonly (readonly [string, unknown])[] = [
  ["undefined", undefined],
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
  ["-0", -0],
  ["the largest number", Number.MAX_VALUE],
  ["the smallest number", Number.MIN_VALUE],
  ["a bigint", 2n ** 70n],
  ["a negative bigint", -1n],
  ["half a surrogate pair", "\ud800"],
  ["a Date", new Date("2024-02-29T12:00:00.123Z")],
  ["an ancient Date", new Date(-8.64e15)],
  ["an invalid Date", new Date(Number.NaN)],
  ["a RegExp", /a\/b[\n]+/giu],
  ["a URL", new URL("https://user@example.org:8080/a%20b?q=1#top")],
  [
    "a Map",
    new Map<unknown, unknown>([
      ["a", 1],
      [{ id: 1 }, new Map([[1n, -0]])],
    ]),
  ],
  [
    "a Map with a key of each kind",
    new Map<unknown, unknown>([
      [undefined, 1],
      [Number.NaN, 2],
      [null, 3],
      [new Date(0), 4],
    ]),
  ],
  ["a Set", new Set<unknown>([1, "1", undefined, [new Set([1n])]])],
  ["an ArrayBuffer", new Uint8Array([0, 127, 128, 255]).buffer],
  ["an empty Uint8Array", new Uint8Array()],
  ["bytes past one piece", new Uint8Array(20_000).map((_, index) => index % 251)],
  ["a view of part of a buffer", new Uint16Array([1, 2, 3, 4]).subarray(1, 3)],
  ["an Int8Array", new Int8Array([-1, 1])],
  ["a Uint8ClampedArray", new Uint8ClampedArray([1, 255])],
  ["an Int16Array", new Int16Array([-300])],
  ["an Int32Array", new Int32Array([-70_000])],
  ["a Uint32Array", new Uint32Array([4_000_000_000])],
  ["a Float32Array", new Float32Array([0.5, Number.NaN, -0])],
  ["a Float64Array", new Float64Array([Math.PI])],
  ["a BigInt64Array", new BigInt64Array([-1n])],
  ["a BigUint64Array", new BigUint64Array([2n ** 64n - 1n])],
  ["a Buffer", Buffer.from("cairn")],
  ["an array with holes", sparse()],
  ["an array of only holes", new Array(3)],
  ["an Error", new Error("no")],
  ["an Error without a message", new Error()],
  [
    "a TypeError with a cause",
    new TypeError("no", { cause: new RangeError("deep", { cause: 1n }) }),
  ],
  ["an Error with a cause that is undefined", new Error("no", { cause: undefined })],
  ["an Error with fields", Object.assign(new Error("no"), { status: 404, at: new Date(0) })],
  ["a TypeError with another name", named(new TypeError("no"), "HttpError")],
  ["an Error that is named as another type", named(new Error("no"), "TypeError")],
  ["an AggregateError", new AggregateError([new Error("one"), "two"], "all")],
  ["a lookalike of a tag", { $date: "2024-01-01T00:00:00.000Z" }],
  ["a lookalike of the wrapper", { $object: { $date: 1 } }],
  ["a lookalike of an unknown tag", { $: { $new: [{ $map: [] }] } }],
  ["a tag's name among other keys", { $date: 1, other: 2 }],
];

/** State, of a Node that has this Float16Array or none. */
async function stateWith(Float16Array: unknown): Promise<typeof State> {
  vi.stubGlobal("Float16Array", Float16Array);
  vi.resetModules();
  const { State: Loaded } = await import("../../src/index.js");
  vi.unstubAllGlobals();
  return Loaded;
}

describe("exact round trip", () => {
  test.each(values)("%s", (_, value) => {
    const restored = roundTrip(value);
    expect(restored).toStrictEqual(value);
    expect(Object.is(restored, value) || typeof value === "object").toBe(true);
  });

  test.each(values)("%s, nested in all that nests", (_, value) => {
    const nested = {
      list: [value, [value]],
      object: { deep: { value } },
      map: new Map([["key", value]]),
      keys: new Map([[value, "value"]]),
      set: new Set([value]),
      error: new Error("outer", { cause: value }),
    };
    expect(roundTrip(nested)).toStrictEqual(nested);
  });

  test("a value that is in the data twice comes back twice", () => {
    const shared = { at: new Date(0) };
    const { first, second } = roundTrip({ first: shared, second: [shared] });
    expect(first).toStrictEqual(shared);
    expect(second).toStrictEqual([shared]);
  });

  test("also when it is the same object, which no cycle makes", () => {
    const state = State.create<Record<string, unknown>>({ a: { when: [new Date(0)] } });
    const twice = state.set("b", state.get("a")).set("c", [state.get("a"), state.get("a")]);
    expect(State.fromJSON<object>(JSON.stringify(twice)).data).toStrictEqual(twice.data);
  });

  test("only what could be taken for a tag is wrapped", () => {
    const data = { two: { $date: 1, other: 2 }, none: {}, list: [{ a: { $: 1, $$: 2 } }], $a: 1 };
    expect(State.create(data).toJSON().data).toEqual(data);
    expect(State.create({ a: 1n, ...data }).toJSON().data).toEqual({
      a: { $bigint: "1" },
      ...data,
    });
    expect(State.create({ $a: 1 }).toJSON().data).toEqual({ $object: { $a: 1 } });
  });

  test("a long array of few items is as quick as a short one", () => {
    const array: unknown[] = [];
    array[2 ** 24 - 1] = { at: new Date(0) };
    // Of the processor, not of the clock: others use this machine too.
    const before = process.cpuUsage();
    const state = State.create({ array, twice: [array, [array]] });
    const restored = State.fromJSON<{ array: unknown[]; twice: [unknown[], [unknown[]]] }>(
      JSON.stringify(state),
    );
    const { user, system } = process.cpuUsage(before);
    // Microseconds; walking it would take seconds.
    expect(user + system).toBeLessThan(1_000_000);
    for (const { data } of [state, restored, restored.update((draft) => void draft.twice.pop())]) {
      for (const one of [data.array, data.twice[0]]) {
        expect(one).toHaveLength(2 ** 24);
        expect(Object.entries(one ?? [])).toStrictEqual(Object.entries(array));
      }
    }
  });

  test("a long array that is nearly full, or has its items where one would look, comes back too", () => {
    const full = Array.from({ length: 20_000 }, (_, index) => index);
    Reflect.deleteProperty(full, 7);
    const few: number[] = [];
    for (let at = 0; at < 32; at++) few[at * 625] = at;
    few.length = 20_000;
    expect(roundTrip(full)).toStrictEqual(full);
    expect(roundTrip(few)).toStrictEqual(few);
  });

  test("a RegExp keeps where it is", () => {
    const pattern = /a/g;
    pattern.test("aa");
    expect(roundTrip(pattern).lastIndex).toBe(1);
  });

  test("an error keeps its stack, hidden fields stay hidden, own ones visible", () => {
    const error = Object.assign(new Error("no", { cause: 1 }), { status: 404 });
    const restored = roundTrip(error);
    expect(restored.stack).toBe(error.stack);
    expect(Object.keys(restored)).toEqual(["status"]);
    expect(restored.cause).toBe(1);
    expect(Object.hasOwn(roundTrip(new Error("no")), "cause")).toBe(false);
  });

  test("a stack that is not text is left out", () => {
    const error = Object.defineProperty(new Error("no"), "stack", { value: ["frame"] });
    expect(roundTrip(error).stack).toBeUndefined();
  });

  test("an error of a class comes back as the nearest of JavaScript's own, with its name", () => {
    class QuotaError extends RangeError {
      override readonly name = "QuotaError";
      readonly left = 0;
    }
    const restored = roundTrip(new QuotaError("used up"));
    expect(restored).toBeInstanceOf(RangeError);
    expect(restored).toMatchObject({ name: "QuotaError", message: "used up", left: 0 });
  });

  test("an object without a prototype comes back as a plain one", () => {
    expect(roundTrip(Object.assign(Object.create(null), { a: 1n }))).toStrictEqual({ a: 1n });
  });

  test.each([[{ $date: null }], [{ $object: {} }], [{ $undefined: true }], [{ $nonsense: 1n }]])(
    "data that is a tag's lookalike itself: %o",
    (data) => {
      const empty = State.create<object>({});
      for (const state of [
        State.create<object>(data),
        empty.merge(data),
        empty.update(() => data),
      ]) {
        expect(State.fromJSON<object>(JSON.stringify(state)).data).toStrictEqual(data);
      }
    },
  );

  test("keys of Object.prototype are data, and change no prototype", () => {
    const text = '{"__proto__":{"polluted":1n},"constructor":{"prototype":1},"toString":"x"}';
    const value = JSON.parse(text.replace("1n", "1"));
    for (const one of [value, { ...value, tagged: 1n }]) {
      const restored = roundTrip(one);
      expect(Object.keys(restored)).toEqual(Object.keys(one));
      expect(Object.getPrototypeOf(restored)).toBe(Object.prototype);
      expect(restored).not.toHaveProperty("polluted");
      expect(Object.getOwnPropertyDescriptor(restored, "__proto__")?.value).toEqual({
        polluted: 1,
      });
    }
    expect({}).not.toHaveProperty("polluted");
  });

  test("a Float16Array comes back where there is one", async () => {
    class Float16Array extends Uint16Array {}
    const [Newer, Older] = [await stateWith(Float16Array), await stateWith(undefined)];
    const text = JSON.stringify(Newer.create({ value: new Float16Array([1, 2]) }));
    expect(Newer.fromJSON<Value>(text).data.value).toStrictEqual(new Float16Array([1, 2]));
    expect(() => Older.fromJSON(text)).toThrow("data.value holds a malformed $bytes");
  });

  test("bytes come back as a Uint8Array where there is no Buffer", () => {
    const text = JSON.stringify(State.create({ value: Buffer.from("x") }));
    const { Buffer: hidden } = globalThis;
    try {
      Reflect.set(globalThis, "Buffer", undefined);
      const { value } = State.fromJSON<Value>(text).data;
      expect(Object.getPrototypeOf(value)).toBe(Uint8Array.prototype);
    } finally {
      Reflect.set(globalThis, "Buffer", hidden);
    }
  });
});

describe("laws", () => {
  test("whatever can be saved survives, and the second text is the first", () => {
    fc.assert(
      fc.property(stateData, (data) => {
        const text = JSON.stringify(State.create(data));
        const restored = State.fromJSON<Record<string, unknown>>(text);
        // Not toStrictEqual: it asks the data's own key `constructor` for its class.
        expect(isDeepStrictEqual(restored.data, data)).toBe(true);
        expect(JSON.stringify(restored)).toBe(text);
      }),
      { numRuns: 500 },
    );
  });

  test("a restored State can be changed like the one it was", () => {
    fc.assert(
      fc.property(stateData, stateData, (data, changes) => {
        const state = State.create(data);
        const restored = State.fromJSON<Record<string, unknown>>(JSON.stringify(state));
        expect(JSON.stringify(restored.merge(changes))).toBe(JSON.stringify(state.merge(changes)));
      }),
    );
  });

  test("data that JSON has is in the JSON as it is", () => {
    fc.assert(
      fc.property(jsonData, (data) => {
        expect(State.create(data).toJSON().data).toStrictEqual(data);
        expect(State.create({ data, when: new Date(0) }).toJSON().data).toStrictEqual({
          data,
          when: { $date: "1970-01-01T00:00:00.000Z" },
        });
      }),
    );
  });
});
