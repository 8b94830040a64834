import { describe, expect, test } from "vitest";
import { MemoryStore, SerializationError, State } from "waymark";
import { isOpaque } from "../../src/state/derive.js";
import { thrown } from "../graphs.js";
import { serializationError } from "../matchers.js";

class Order {
  readonly amount = 1;
}

class Stack extends Array<number> {}

class Bytes extends Uint8Array {}

function withKey<T extends object>(value: T, key: PropertyKey, item: unknown = 1): T {
  return Object.defineProperty(value, key, { value: item, enumerable: true });
}

function transferred(view: ArrayBufferView = new Uint8Array(1)): ArrayBufferView {
  structuredClone(view.buffer, { transfer: [view.buffer as ArrayBuffer] });
  return view;
}

function nested(levels: number, wrap: (inner: unknown) => object = (d) => ({ d })): object {
  let value = {};
  for (let level = 0; level < levels; level++) value = wrap(value);
  return value;
}

describe("what a checkpoint can't hold is refused with its path", () => {
  test.each<[string, unknown, RegExp]>([
    ["a function", encodeURI, /is the function encodeURI, which a checkpoint can't hold/],
    ["an unnamed function", (() => () => {})(), /is the function \(anonymous\)/],
    ["a symbol", Symbol("secret"), /is Symbol\(secret\)/],
    ["a class instance", new Order(), /is a Order, .*: put plain data into the State/],
    ["an instance of an unnamed class", new (class {})(), /is an object of an unnamed class/],
    ["a State", State.create({}), /is a State/],
    ["a Promise", Promise.resolve(), /is a Promise/],
    ["a WeakMap", new WeakMap(), /is a WeakMap/],
    ["a boxed string", Object("text"), /is a String/],
    ["a SharedArrayBuffer", new SharedArrayBuffer(1), /is a SharedArrayBuffer/],
    ["a DataView", new DataView(new ArrayBuffer(1)), /is a DataView/],
    ["a Date of a class", new (class When extends Date {})(), /is a When/],
    ["a Map of a class", new (class Index extends Map {})(), /is a Index/],
    ["an array of a class", Stack.of(1), /is an array of a class of its own: copy it/],
    ["typed bytes of a class", new Bytes(1), /is a Bytes/],
    ["a Date with a field", withKey(new Date(), "zone"), /is a Date with the key "zone"/],
    ["a Map with a field", withKey(new Map(), "size2"), /is a Map with the key "size2"/],
    ["bytes that were given away", transferred().buffer, /is a buffer whose bytes were given away/],
    [
      "a view of bytes that were given away",
      transferred(new Uint16Array(1)),
      /is a buffer whose bytes were given away/,
    ],
    [
      "a long sparse array with a name",
      withKey(withKey([], 1e6), "name"),
      /is an array with the key "name"/,
    ],
    ["an array of millions of holes", new Array(2 ** 32 - 1), /is an array of 4294967295 items/],
    [
      "a RegExp that would not load again",
      Object.assign(/x/g, { lastIndex: Number.NaN }),
      /is a RegExp whose lastIndex is NaN: set it to an integer/,
    ],
    ["a match of a RegExp", /x/.exec("x"), /is an array with the key "index": copy it/],
    [
      "a sparse array with a name",
      withKey(new Array(2), "name"),
      /is an array with the key "name"/,
    ],
    ["an array with what looks like an index", withKey([1], "01"), /with the key "01"/],
    ["an array with a number too high for an index", withKey([1], "4294967295"), /with the key/],
    ...[{}, [1], new Date(0), new Map(), new Set(), new Error("x"), new Uint8Array(2)].map(
      (value): [string, unknown, RegExp] => [
        `${value.constructor.name} with a symbol as key`,
        withKey(value, Symbol("id")),
        /has the key Symbol\(id\)/,
      ],
    ),
    ["an instance with a symbol as key", withKey(new Order(), Symbol("id")), /is a Order/],
  ])("%s", (_, bad, message) => {
    const paths: readonly [object, string][] = [
      [{ bad }, "data.bad"],
      [{ a: { b: [0, { bad }] } }, "data.a.b[1].bad"],
      [{ "odd key": { bad } }, 'data["odd key"].bad'],
      [{ map: new Map([["key", bad]]) }, "data.map[0][1]"],
      [{ keys: new Map([[bad, 1]]) }, "data.keys[0][0]"],
      [{ set: new Set([1, bad]) }, "data.set[1]"],
      [{ error: new Error("x", { cause: bad }) }, "data.error.cause"],
      [{ $date: bad }, "data.$date"],
      [{ sparse: withKey(new Array(5), 2, bad) }, "data.sparse[2]"],
    ];
    for (const [data, path] of paths) {
      const state = State.create(data);
      expect(() => state.toJSON()).toThrow(serializationError(path, message));
      expect(() => JSON.stringify(state)).toThrow(serializationError(path, message));
    }
  });

  test.each([
    ["name", 5],
    ["message", { text: "no" }],
  ])("an Error whose %s is not text", (key, value) => {
    const error = Object.defineProperty(new Error("no"), key, { value });
    expect(() => State.create({ error }).toJSON()).toThrow(
      serializationError(`data.error.${key}`, "must be a string"),
    );
  });

  test("a symbol as key of what is merged, which is not passed over", () => {
    const state = State.create<object>({ a: 1 }).merge({ [Symbol("id")]: 1 });
    for (const one of [state, state.set("a" as never, 2 as never), state.clone()]) {
      expect(() => one.toJSON()).toThrow(
        serializationError("data", /^data has the key Symbol\(id\): keys must be strings$/),
      );
    }
  });

  test("an Error whose message is no text, whatever its stack makes of that", () => {
    const error = Object.defineProperty(new Error("no"), "message", { value: Symbol("no") });
    expect(() => State.create({ error }).toJSON()).toThrow(
      serializationError(
        "data.error.message",
        /is Symbol\(no\): that of an Error must be a string/,
      ),
    );
  });

  test("a symbol as key of the data itself, also after a change", () => {
    const state = State.create<Record<string, number>>({ [Symbol("id")]: 1 });
    for (const one of [state, state.set("a", 1), state.merge({ a: 1 })]) {
      expect(() => one.toJSON()).toThrow(serializationError("data", "the key Symbol\\(id\\)"));
    }
  });

  test("what a getter throws is passed on as it is", () => {
    const mine = new RangeError("mine");
    const broken = {
      get value() {
        throw mine;
      },
    };
    class Broken extends Error {}
    const error = Object.defineProperties(new Broken(), Object.getOwnPropertyDescriptors(broken));
    expect(() => State.create({ broken })).toThrow(mine);
    expect(() => State.create({ error }).toJSON()).toThrow(mine);
  });

  test("what was refused no longer matters once it is gone", () => {
    const state = State.create<{ a: unknown }>({ a: () => {} }).set("a", 1);
    expect(state.toJSON().data).toEqual({ a: 1 });
    expect(isOpaque(state)).toBe(false);
  });
});

describe("cycles are data, but no checkpoint", () => {
  interface Cyclic {
    [key: string]: unknown;
  }

  const cyclic: readonly (readonly [string, string, () => Cyclic])[] = [
    ["an object in itself", "data.value.self", () => cycle((self) => ({ self }))],
    ["twice in itself", "data.value.left", () => cycle((self) => ({ left: self, right: self }))],
    ["through an array", "data.value.list[1]", () => cycle((self) => ({ list: [0, self] }))],
    [
      "through a Map",
      "data.value.map[0][1]",
      () => cycle((self) => ({ map: new Map([[1, self]]) })),
    ],
    ["through a Set", "data.value.set[0]", () => cycle((self) => ({ set: new Set([self]) }))],
    [
      "through an Error",
      "data.value.error.cause",
      () => cycle((self) => ({ error: new Error("x", { cause: self }) })),
    ],
  ];

  function cycle(make: (self: Cyclic) => Cyclic): Cyclic {
    const self: Cyclic = {};
    return Object.assign(self, make(self));
  }

  test.each(cyclic)("%s", (_, path, make) => {
    const state = State.create<Cyclic>({ value: make() });
    expect(() => state.toJSON()).toThrow(serializationError(path, "contains itself"));
    expect(Object.isFrozen(state.data.value)).toBe(true);
    expect(state.set("value", 1).toJSON().data).toEqual({ value: 1 });
  });

  test("a list that is linked both ways is copied once, not once for each way through it", () => {
    const items: Cyclic[] = Array.from({ length: 200 }, (_, id) => ({ id }));
    for (const [at, item] of items.entries()) {
      Object.assign(item, { before: items[at - 1], after: items[at + 1] });
    }
    const { data } = State.create({ first: items[0] as Cyclic });
    const second = data.first.after as Cyclic;
    expect(second.id).toBe(1);
    expect(second.before).toBe(data.first);
    expect(Object.isFrozen(second)).toBe(true);
  });
});

describe("nesting", () => {
  const wraps: readonly (readonly [string, (inner: unknown) => object])[] = [
    ["objects", (inner) => ({ d: inner })],
    ["arrays", (inner) => [inner]],
    ["Maps", (inner) => new Map([["d", inner]])],
    ["Sets", (inner) => new Set([inner])],
    ["Errors", (inner) => new Error("x", { cause: inner })],
    ["lookalikes", (inner) => ({ $d: inner })],
  ];

  test.each(wraps)("100,000 %s are refused by an error that says so", (_, wrap) => {
    const state = State.create({ a: nested(100_000, wrap) });
    expect(() => state.toJSON()).toThrow(/^data\.a.* is nested more than 1000 levels deep$/);
  });

  test.each(wraps)("what is saved of deep %s can be loaded", (_, wrap) => {
    for (const levels of [60, 300, 490, 498, 499, 500, 501, 990, 998, 999, 1000, 1001]) {
      const state = State.create({ a: nested(levels, wrap) });
      let text: string;
      try {
        text = JSON.stringify(state);
      } catch (error) {
        expect(error).toMatchObject({ code: "SERIALIZATION" });
        expect(levels).toBeGreaterThanOrEqual(499);
        continue;
      }
      expect(JSON.stringify(State.fromJSON(text))).toBe(text);
    }
  });

  test("depth that grew step by step is refused too, before it is in a store", () => {
    let state = State.create<{ past: object; at?: Date }>({ past: {} });
    for (let step = 0; step < 999; step++) state = state.set("past", { past: state.data.past });
    expect(State.fromJSON(JSON.stringify(state)).data).toEqual(state.data);
    const deeper = state.set("past", { past: state.data.past });
    for (const one of [deeper, deeper.set("at", new Date(0)), deeper.merge({}), deeper.clone()]) {
      expect(() => one.toJSON()).toThrow(/is nested more than 1000 levels deep$/);
    }
  });

  test.each(wraps)("%s that grew step by step are refused by every store", async (_, wrap) => {
    let state = State.create<{ past: unknown }>({ past: 0 });
    for (let step = 0; step < 1001; step++) state = state.set("past", wrap(state.data.past));
    await expect(state.checkpoint(new MemoryStore())).rejects.toMatchObject({
      code: "SERIALIZATION",
    });
  });

  test("100,000 levels out of a text or an object are refused too", () => {
    const json = JSON.stringify(State.create({ a: 0 }));
    const text = json.replace('"a":0', `"a":${"[".repeat(100_000)}${"]".repeat(100_000)}`);
    expect(() => State.fromJSON(text)).toThrow(/^data\.a.* is nested more than 1000 levels deep$/);
    const tree = { ...State.create({}).toJSON(), data: nested(100_000) };
    expect(() => State.fromJSON(tree)).toThrow(serializationError("state", "is not JSON"));
  });
});

test("a bigint is saved up to its limit of digits, and refused above", () => {
  const longest = State.create({ n: 10n ** 99_999n });
  expect(State.fromJSON(longest.toJSON()).data).toEqual(longest.data);
  const longer = State.create({ n: 10n ** 100_000n });
  const error = thrown(() => longer.toJSON(), SerializationError);
  expect(error.message).toContain("is a bigint of 100001 digits: a checkpoint holds up to 100000");
});

/** Does something when the stack has room for about so many more calls. */
function withRoomFor(calls: number, action: () => void): void {
  let depth = 0;
  const dive = (levels: number): void => {
    depth++;
    if (levels > 0) dive(levels - 1);
    else action();
  };
  expect(() => dive(Number.POSITIVE_INFINITY)).toThrow(RangeError);
  dive(depth - calls);
}

test.each([1000, 2000, 4000])("a stack with room for %i calls is never overrun", (calls) => {
  const errors = nested(900, (cause) => new Error("x", { cause }));
  const text = JSON.stringify(State.create({ errors }));
  const outcomes: unknown[] = [];
  const attempt = (action: () => unknown): void => {
    try {
      action();
    } catch (error) {
      outcomes.push(error);
    }
  };
  withRoomFor(calls, () => {
    attempt(() => State.create({ errors }).toJSON());
    attempt(() => State.create({}).merge({ errors }).toJSON());
    attempt(() => State.fromJSON(text));
  });
  expect(outcomes.length).toBeGreaterThan(0);
  for (const error of outcomes) expect(error).toMatchObject({ code: "SERIALIZATION" });
});
