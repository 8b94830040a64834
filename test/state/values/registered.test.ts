import { describe, expect, test } from "vitest";
import { MemoryStore, State } from "waymark";
import { registerType, type TypeDefinition } from "waymark/codecs";
import { decode, encode, saved } from "../../codecs/documents.js";
import { configError, serializationError } from "../../matchers.js";

class Money {
  readonly #cents: bigint;
  constructor(
    cents: bigint,
    readonly currency: string,
  ) {
    this.#cents = cents;
  }
  get cents(): bigint {
    return this.#cents;
  }
}

registerType("Money", {
  class: Money,
  toData: ({ cents, currency }) => ({ cents, currency }),
  fromData: ({ cents, currency }) => new Money(cents, currency),
});

class Basket {
  constructor(readonly prices: readonly Money[]) {}
}

registerType("Basket", {
  class: Basket,
  toData: ({ prices }) => prices,
  fromData: (prices) => new Basket(prices),
});

function json(value: unknown): State<{ value: unknown }> {
  const { data: _data, ...rest } = State.create({}).toJSON();
  return State.fromJSON({ ...rest, data: { value } });
}

describe("a registered class", () => {
  test("comes back as itself, through a document and through JSON", async () => {
    const state = saved({ price: new Money(995n, "EUR") });
    for (const loaded of [
      await decode<{ price: Money }>({}, await encode({}, state)),
      State.fromJSON<{ price: Money }>(state.toJSON()),
    ]) {
      expect(loaded.data.price).toBeInstanceOf(Money);
      expect(loaded.data.price.cents).toBe(995n);
    }
    expect(state.toJSON().data).toEqual({
      price: { $type: ["Money", { cents: { $bigint: "995" }, currency: "EUR" }] },
    });
  });

  test("comes back out of a MemoryStore as another instance", async () => {
    const store = new MemoryStore();
    const state = await State.create({ price: new Money(1n, "EUR") }).checkpoint(store);
    const loaded = await store.load<{ price: Money }>(state.runId);
    expect(loaded.data.price).toBeInstanceOf(Money);
    expect(loaded.data.price).not.toBe(state.data.price);
  });

  test("may hold others, and be a Map's key", () => {
    const basket = new Basket([new Money(1n, "EUR"), new Money(2n, "USD")]);
    const state = State.create({ all: new Map([[basket, new Set([basket])]]) });
    const loaded = State.fromJSON<{ all: Map<Basket, Set<Basket>> }>(state.toJSON());
    const [key] = [...loaded.data.all.keys()];
    expect(key).toBeInstanceOf(Basket);
    expect(key?.prices.map(({ cents }) => cents)).toEqual([1n, 2n]);
  });

  test("may be an Error's", () => {
    class Refused extends Error {
      constructor(readonly status: number) {
        super(`refused with ${status}`);
      }
    }
    registerType("Refused", {
      class: Refused,
      toData: ({ status }) => status,
      fromData: (status) => new Refused(status),
    });
    const state = State.create({ error: new Refused(403) });
    const { error } = State.fromJSON<{ error: Refused }>(state.toJSON()).data;
    expect(error).toBeInstanceOf(Refused);
    expect(error.status).toBe(403);
  });

  test("does not stand for its subclasses", () => {
    class Tip extends Money {}
    expect(() => State.create({ tip: new Tip(1n, "EUR") }).toJSON()).toThrow(
      serializationError("data.tip", "is a Tip"),
    );
  });

  test("may have had another name: all are read, the last is written", () => {
    class Place {}
    const definition = { class: Place, toData: () => null, fromData: () => new Place() };
    registerType("OldPlace", definition);
    registerType("Place", definition);
    expect(State.create({ at: new Place() }).toJSON().data).toEqual({
      at: { $type: ["Place", null] },
    });
    expect(json({ $type: ["OldPlace", null] }).data.value).toBeInstanceOf(Place);
  });

  test("gets its data frozen", () => {
    class Frozen {}
    const seen: unknown[] = [];
    registerType("Frozen", {
      class: Frozen,
      toData: () => ({ list: [1] }),
      fromData: (data) => {
        seen.push(data);
        return new Frozen();
      },
    });
    State.fromJSON(State.create({ a: new Frozen() }).toJSON());
    expect(seen).toEqual([{ list: [1] }]);
    expect(Object.isFrozen(seen[0])).toBe(true);
  });
});

describe("what is refused", () => {
  test("a name that is not registered", () => {
    expect(() => json([{ $type: ["Nobody", {}] }])).toThrow(
      serializationError("data.value[0]", 'holds the type "Nobody", which is unknown here'),
    );
  });

  test.each(
    [null, 5, "Money", [], ["Money"], [5, {}], ["Money", {}, 1], { Money: 1 }].map((one) => [one]),
  )("the tag with %j in it", (content) => {
    expect(() => json({ $type: content })).toThrow(
      serializationError("data.value", /holds a malformed \$type/),
    );
  });

  test("what fromData does not want, or does not return", () => {
    expect(() => json({ $type: ["Basket", { a: 1 }] })).not.toThrow();
    expect(() => json({ $type: ["Money", null] })).toThrow(
      serializationError("data.value", "holds a Money whose fromData failed: TypeError"),
    );
    class Half {}
    registerType("Half", { class: Half, toData: () => 1, fromData: () => ({}) as Half });
    expect(() => json({ $type: ["Half", 1] })).toThrow(
      serializationError("data.value", "holds a Half whose fromData returned an object"),
    );
  });

  test("what toData throws, or gives that can't be saved", () => {
    class Broken {}
    let give: () => unknown = () => {
      throw new RangeError("not today");
    };
    registerType("Broken", { class: Broken, toData: () => give(), fromData: () => new Broken() });
    const state = State.create({ a: [new Broken()] });
    expect(() => state.toJSON()).toThrow(
      serializationError("data.a[0]", "is a Broken whose toData failed: RangeError: not today"),
    );
    give = () => ({ f: () => 1 });
    expect(() => state.toJSON()).toThrow(serializationError("data.a[0].f", "is the function f"));
    give = () => state.data.a[0];
    expect(() => state.toJSON()).toThrow(serializationError("data.a[0]", "contains itself"));
    give = () => [new Broken()];
    expect(() => state.toJSON()).toThrow(
      serializationError(
        expect.stringMatching(/^data\.a\[0\]/) as unknown as string,
        "levels deep",
      ),
    );
  });

  test.each<[string, unknown, string, string]>([
    ["", {}, "name", "must be a non-empty string"],
    ["X", 5, 'type "X"', "must be an object of options"],
    ["X", {}, 'type "X".class', "must be a function"],
    ["X", { class: class {}, toData: () => 1 }, 'type "X".fromData', "must be a function"],
    [
      "X",
      { class: () => 1, toData: () => 1, fromData: () => 1 },
      'type "X".class',
      "must be a class",
    ],
    [
      "Money",
      { class: class Coin {}, toData: () => 1, fromData: () => 1 },
      "name",
      '"Money" is the name of another class already',
    ],
  ])("the name %j with %j", (name, definition, option, message) => {
    expect(() => registerType(name, definition as TypeDefinition<object, unknown>)).toThrow(
      configError(option, message),
    );
  });
});
