import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { State } from "waymark";

interface Item {
  id: number;
  tags: string[];
}

interface Data {
  items: Item[];
  index: Map<string, Item>;
  seen: Set<Item>;
  when: Date;
  last: Error;
  bytes?: Uint8Array;
  options: { deep: { on: boolean } };
}

function data(): Data {
  return {
    items: [
      { id: 1, tags: ["a"] },
      { id: 2, tags: ["b"] },
    ],
    index: new Map([["one", { id: 1, tags: [] }]]),
    seen: new Set([{ id: 3, tags: [] }]),
    when: new Date(0),
    last: new Error("no", { cause: { code: 1 } }),
    options: { deep: { on: true } },
  };
}

const keys = ["items", "index", "seen", "when", "last", "options"] as const;

// What was loaded is shared like what was made here.
describe.each<[string, () => State<Data>]>([
  ["created", () => State.create(data())],
  ["loaded", () => State.fromJSON(JSON.stringify(State.create(data())))],
])("of a State that was %s, what did not change is the same object", (_, make) => {
  test("after set", () => {
    const state = make();
    const next = state.set("bytes", new Uint8Array(1));
    for (const key of keys) expect(next.data[key]).toBe(state.data[key]);
  });

  test("after a change beside it, at every level", () => {
    const state = make();
    const next = state.update((draft) => {
      draft.items[0]?.tags.push("c");
    });
    expect(next.data.items).not.toBe(state.data.items);
    expect(next.data.items[0]).not.toBe(state.data.items[0]);
    expect(next.data.items[1]).toBe(state.data.items[1]);
    for (const key of keys.slice(1)) expect(next.data[key]).toBe(state.data[key]);
  });

  test("when it is put into a new object by hand", () => {
    const state = make();
    const { items, index, seen, when, last } = state.data;
    const next = state.merge({ items: [...items, { id: 3, tags: [] }] });
    expect([next.data.items[0], next.data.items[1]]).toEqual([items[0], items[1]]);
    expect(next.data.items[0]).toBe(items[0]);
    const other = State.create({ all: [{ index, seen, when, last }] }).data.all[0];
    expect(other?.index).toBe(index);
    expect(other?.seen).toBe(seen);
    expect(other?.when).toBe(when);
    expect(other?.last).toBe(last);
  });

  test("after clone, setCheckpointNode, savedAs: all of it", () => {
    const state = make();
    const record = { checkpointId: "x", sequence: 1 };
    for (const next of [state.clone(), state.setCheckpointNode("x"), state.savedAs(record)]) {
      expect(next.data).toBe(state.data);
    }
  });

  test("after a merge of another State", () => {
    const state = make();
    expect(State.create<Partial<Data>>({}).merge(state).data.items).toBe(state.data.items);
  });

  test("of a Map and a Set, whose other entries are shared", () => {
    const state = make();
    const next = state.update((draft) => {
      draft.index.set("two", { id: 2, tags: [] });
      draft.seen.add({ id: 4, tags: [] });
    });
    expect(next.data.index.get("one")).toBe(state.data.index.get("one"));
    expect([...next.data.seen][0]).toBe([...state.data.seen][0]);
  });
});

test.each<[string, (bytes: Uint8Array) => unknown, (value: never) => Uint8Array | undefined]>([
  ["an object", (bytes) => ({ bytes }), (value: { bytes: Uint8Array }) => value.bytes],
  ["a list", (bytes) => [bytes], (value: Uint8Array[]) => value[0]],
  ["a Map", (bytes) => new Map([[1, bytes]]), (value: Map<number, Uint8Array>) => value.get(1)],
  [
    "a Map's key",
    (bytes) => new Map([[bytes, 1]]),
    (value: Map<Uint8Array, 1>) => [...value.keys()][0],
  ],
  ["a Set", (bytes) => new Set([bytes]), (value: Set<Uint8Array>) => [...value][0]],
  ["an Error", (cause) => new Error("no", { cause }), (value: Error) => value.cause as Uint8Array],
])(
  "bytes in %s that was loaded, which could be written to, are not shared with another State",
  (_, wrap, unwrap) => {
    const created = State.create({ value: wrap(new Uint8Array([1])) });
    const loaded = State.fromJSON<{ value: never }>(created.toJSON());
    const other = State.create({ value: loaded.data.value });
    unwrap(loaded.data.value)?.fill(2);
    expect(unwrap(other.data.value)).toEqual(new Uint8Array([1]));
  },
);

describe("data that came in deeply frozen is not copied", () => {
  test("plain objects and arrays", () => {
    const inner = Object.freeze({ list: Object.freeze([1, Number.NaN]) });
    expect(State.create({ inner }).data.inner).toBe(inner);
  });

  test.each<[string, object]>([
    ["soft insides", Object.freeze({ list: [1] })],
    [
      "a getter",
      Object.freeze({
        get now() {
          return Date.now();
        },
      }),
    ],
    ["no prototype", Object.freeze(Object.create(null))],
    ["a name on an array", Object.freeze(Object.assign([1], { name: "x" }))],
  ])("but it is with %s", (_, inner) => {
    expect(State.create({ inner }).data.inner).not.toBe(inner);
  });

  test("shared and deep at once, it is shared", () => {
    let deep: object = Object.freeze({ leaf: true });
    for (let level = 0; level < 100; level++) deep = Object.freeze({ deep });
    const { first, second } = State.create({ first: deep, second: [deep] }).data;
    expect(first).toBe(deep);
    expect(second[0]).toBe(deep);
  });
});

test("a value that is in deep data twice is copied once", () => {
  const shared = { a: [1] };
  let deep: object = { shared };
  for (let level = 0; level < 100; level++) deep = { deep, shared };
  const state = State.create({ deep, shared });
  expect(JSON.stringify(state.toJSON().data)).toBe(JSON.stringify({ deep, shared }));
  expect(Object.isFrozen(state.data.shared.a)).toBe(true);
});

describe("the copy of a value does not depend on the previous value", () => {
  const part = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>(0, -0, 1, "a", null, undefined, Number.NaN, new Date(0), 1n),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom("a", "b", "$a", "__proto__"), tie("value"), { maxKeys: 2 }),
    ),
  })).value;

  test("whatever the two are, and whatever they share", () => {
    const changed = fc.tuple(fc.array(part, { maxLength: 5 }), fc.nat(5), part, fc.boolean());
    fc.assert(
      fc.property(changed, ([list, at, value, nested]) => {
        const wrap = (items: readonly unknown[]): unknown => (nested ? { x: { items } } : items);
        const before = State.create<{ list: unknown }>({ list: wrap(list) });
        const shared = before.data.list as { x: { items: unknown[] } } & unknown[];
        const next = [...(nested ? shared.x.items : shared)];
        next[at] = value;
        const after = before.set("list", wrap(next));
        const fresh = State.create<{ list: unknown }>({ list: wrap(structuredClone(next)) });
        expect(after.toJSON().data).toEqual(fresh.toJSON().data);
        expect(after.data).toEqual(fresh.data);
        expect(JSON.stringify(State.fromJSON(after.toJSON()).toJSON().data)).toBe(
          JSON.stringify(fresh.toJSON().data),
        );
      }),
      { numRuns: 2000 },
    );
  });

  test("a zero that becomes a negative one is another", () => {
    const state = State.create({ list: [0, 1] }).set("list", [-0, 1]);
    expect(Object.is(State.fromJSON<typeof state.data>(state.toJSON()).data.list[0], -0)).toBe(
      true,
    );
  });

  test("no getter of an instance is called", () => {
    class Odd {
      get x(): number {
        throw new Error("called");
      }
    }
    const state = State.create<{ odd: object }>({ odd: new Odd() });
    expect(state.set("odd", { x: 1 }).data.odd).toEqual({ x: 1 });
  });
});

describe("what is in the data many times", () => {
  const levels = 40;

  function shared<T>(leaf: T): object {
    let value: object = { leaf };
    for (let level = 0; level < levels; level++) value = { l: value, r: value };
    return value;
  }

  test.each([
    ["plain", 1],
    ["tagged", new Date(1)],
    ["opaque", new URL("https://example.org/")],
  ])("is copied and encoded once: %s", (_, leaf) => {
    const state = State.create({ tree: shared(leaf) });
    const json = state.toJSON().data as { tree: object };
    for (const root of [state.data.tree, json.tree]) {
      let tree: object = root;
      for (let level = 0; level < levels; level++) {
        const { l, r } = tree as { l: object; r: object };
        expect(l).toBe(r);
        tree = l;
      }
    }
  });

  test("is copied once in arrays, Maps, Sets and Errors too", () => {
    const leaf = { n: 1 };
    const list = [leaf, leaf];
    const error = new Error("no", { cause: leaf });
    const { data } = State.create({ list, map: new Map([[1, list]]), set: new Set([list]), error });
    expect(data.list[0]).toBe(data.list[1]);
    expect(data.map.get(1)).toBe(data.list);
    expect(data.set.has(data.list)).toBe(true);
    expect(data.error.cause).toBe(data.list[0]);
    expect(Object.isFrozen(data.list[0])).toBe(true);
  });
});
