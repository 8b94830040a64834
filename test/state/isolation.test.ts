import { describe, expect, test } from "vitest";
import { MemoryStore, pause, State, StateGraph } from "waymark";

/** Every object that can be reached from a value through fields, items, entries and causes. */
function reachable(value: unknown, seen = new Set<object>()): Set<object> {
  if (typeof value !== "object" || value === null || seen.has(value)) return seen;
  seen.add(value);
  for (const key of Reflect.ownKeys(value)) reachable(Reflect.get(value, key), seen);
  if (value instanceof Map || value instanceof Set) for (const item of value) reachable(item, seen);
  return seen;
}

function rich(): Record<string, unknown> {
  return {
    list: [{ deep: [1] }],
    date: new Date(0),
    map: new Map([[{ key: [1] }, { value: [1] }]]),
    set: new Set([{ item: [1] }]),
    error: Object.assign(new TypeError("no", { cause: { code: [1] } }), { fields: [1] }),
    aggregate: new AggregateError([{ one: 1 }], "all"),
    bare: Object.assign(Object.create(null), { inner: [1] }),
    frozen: Object.freeze({ inner: [1], at: new Date(0) }),
    frozenList: Object.freeze([{ inner: 1 }]),
    frozenMap: Object.freeze(new Map([[1, [1]]])),
  };
}

function frozenObjects(state: State<object>): boolean[] {
  // The entries of a Map are made anew by each walk.
  return [...reachable(state.data)]
    .filter((one) => !(Array.isArray(one) && one.length === 2))
    .map((one) => Object.isFrozen(one));
}

describe("data is deeply frozen", () => {
  test.each<[string, () => State<Record<string, unknown>>]>([
    ["create", () => State.create(rich())],
    ["set", () => State.create<Record<string, unknown>>({}).set("rich", rich())],
    ["merge", () => State.create<Record<string, unknown>>({}).merge(rich())],
    [
      "update",
      () =>
        State.create<Record<string, unknown>>({}).update((draft) => Object.assign(draft, rich())),
    ],
    ["fromJSON", () => State.fromJSON(State.create(rich()).toJSON())],
    [
      "a change after fromJSON",
      () => State.fromJSON<Record<string, unknown>>(State.create(rich()).toJSON()).set("a", 1),
    ],
  ])("by %s", (_, make) => {
    const frozen = frozenObjects(make());
    expect(frozen.length).toBeGreaterThan(25);
    expect(new Set(frozen)).toEqual(new Set([true]));
  });

  const mutations: readonly (readonly [string, (data: ReturnType<typeof mutable>) => unknown])[] = [
    ["a field", (data) => Reflect.set(data, "count", 2) || fail()],
    ["a new field", (data) => Reflect.set(data, "more", 2) || fail()],
    ["a field that goes", (data) => Reflect.deleteProperty(data, "count") || fail()],
    ["an item", (data) => data.list.push(1)],
    ["Date.setTime", (data) => data.date.setTime(1)],
    ["Date.setUTCFullYear", (data) => data.date.setUTCFullYear(1)],
    ["Map.set", (data) => data.map.set("a", 2)],
    ["Map.delete", (data) => data.map.delete("a")],
    ["Map.clear", (data) => data.map.clear()],
    ["Set.add", (data) => data.set.add(2)],
    ["Set.delete", (data) => data.set.delete(1)],
    ["Set.clear", (data) => data.set.clear()],
    ["an error's message", (data) => Reflect.set(data.error, "message", "x") || fail()],
  ];

  function fail(): never {
    throw new TypeError("refused");
  }

  function mutable() {
    return {
      count: 1,
      list: [0],
      date: new Date(0),
      map: new Map([["a", 1]]),
      set: new Set([1]),
      error: new Error("no"),
    };
  }

  test.each(mutations)("%s can't be changed", (_, mutate) => {
    const state = State.create(mutable());
    const before = JSON.stringify(state);
    expect(() => mutate(state.data as ReturnType<typeof mutable>)).toThrow(TypeError);
    expect(JSON.stringify(state)).toBe(before);
  });

  test("a Map, Set and Date can still be read", () => {
    const { map, set, date } = State.create(mutable()).data;
    expect([map.get("a"), map.size, [...map.keys()]]).toEqual([1, 1, ["a"]]);
    expect([set.has(1), [...set]]).toEqual([true, [1]]);
    expect([date.toISOString(), date < new Date()]).toEqual(["1970-01-01T00:00:00.000Z", true]);
    expect(structuredClone(map)).toEqual(new Map([["a", 1]]));
  });
});

describe("a State shares nothing with what it was given", () => {
  const cases: readonly (readonly [string, () => { value: unknown; change: () => unknown }])[] = [
    ["an object", () => changing({ a: 1 }, (o) => Object.assign(o, { a: 2 }))],
    ["an array", () => changing([1], (a) => a.push(2))],
    ["a Date", () => changing(new Date(0), (d) => d.setTime(1))],
    ["a Map", () => changing(new Map([[1, 1]]), (m) => m.set(1, 2))],
    ["a Set", () => changing(new Set([1]), (s) => s.add(2))],
    [
      "a Map's key",
      () => {
        const key = { a: 1 };
        return { value: new Map([[key, 1]]), change: () => Object.assign(key, { a: 2 }) };
      },
    ],
    ["a RegExp", () => changing(/a/g, (r) => Object.assign(r, { lastIndex: 5 }))],
    ["a URL", () => changing(new URL("https://a.org"), (u) => Object.assign(u, { hash: "x" }))],
    [
      "an Error",
      () => changing(new Error("no"), (e) => Object.assign(e, { message: "yes", more: 1 })),
    ],
    [
      "an Error's cause",
      () => {
        const cause = { a: 1 };
        return { value: new Error("no", { cause }), change: () => Object.assign(cause, { a: 2 }) };
      },
    ],
    [
      "an ArrayBuffer",
      () => {
        const bytes = new Uint8Array([1]);
        return { value: bytes.buffer, change: () => bytes.fill(2) };
      },
    ],
    ["a Uint8Array", () => changing(new Uint8Array([1]), (b) => b.fill(2))],
    ["a Float64Array", () => changing(new Float64Array([1]), (b) => b.fill(2))],
    ["a Buffer", () => changing(Buffer.from("a"), (b) => b.fill("b"))],
    [
      "a shared buffer's view",
      () => changing(new Uint8Array(new SharedArrayBuffer(1)), (b) => b.fill(2)),
    ],
    [
      "a frozen object with soft insides",
      () => {
        const inner = [1];
        return { value: Object.freeze({ inner }), change: () => inner.push(2) };
      },
    ],
    [
      "a frozen array with soft insides",
      () => {
        const inner = { a: 1 };
        return { value: Object.freeze([inner]), change: () => Object.assign(inner, { a: 2 }) };
      },
    ],
    ["a frozen Map", () => changing(Object.freeze(new Map([[1, 1]])), (m) => m.set(1, 2))],
    ["a frozen Set", () => changing(Object.freeze(new Set([1])), (s) => s.add(2))],
    ["a frozen Date", () => changing(Object.freeze(new Date(0)), (d) => d.setTime(1))],
    [
      "a getter of a frozen object",
      () => {
        let a = 1;
        return {
          value: Object.freeze({
            get a() {
              return a;
            },
          }),
          change: () => {
            a = 2;
          },
        };
      },
    ],
  ];

  test("a getter of a frozen Error", () => {
    let a = 1;
    const error = Object.defineProperty(new Error("no"), "a", { get: () => a, enumerable: true });
    const state = State.create({ error: Object.freeze(error) });
    a = 2;
    expect(state.data.error).toHaveProperty("a", 1);
  });

  function changing<T>(
    value: T,
    change: (value: T) => unknown,
  ): { value: T; change: () => unknown } {
    return { value, change: () => change(value) };
  }

  type Data = Record<string, unknown>;
  const ways: readonly (readonly [string, (value: unknown) => State<Data>])[] = [
    ["create", (value) => State.create<Data>({ value, nested: [{ value }] })],
    ["set", (value) => State.create<Data>({}).set("value", value)],
    ["merge", (value) => State.create<Data>({}).merge({ value })],
    [
      "update",
      (value) =>
        State.create<Data>({}).update((draft) => {
          draft.value = value;
        }),
    ],
  ];

  test.each(cases)("%s", (_, make) => {
    for (const [way, put] of ways) {
      const { value, change } = make();
      const state = put(value);
      const before = JSON.stringify(state);
      change();
      expect(JSON.stringify(state), way).toBe(before);
    }
  });

  test("and freezes nothing of it", () => {
    const data = rich();
    State.create(data).merge(data).set("list", data.list);
    expect(Object.isFrozen(data)).toBe(false);
    expect(Object.isFrozen(data.list)).toBe(false);
    expect(() => (data.map as Map<unknown, unknown>).clear()).not.toThrow();
    expect(() => (data.date as Date).setTime(1)).not.toThrow();
  });

  test("but a class instance, which it can't copy: a save refuses it", () => {
    class Order {}
    const order = new Order();
    const state = State.create({ order });
    expect(state.data.order).toBe(order);
    expect(() => state.toJSON()).toThrow("data.order is a Order");
  });

  test("an error of a custom class becomes what it is restored as", () => {
    class HttpError extends TypeError {
      readonly status = 404;
    }
    const error = new HttpError("no");
    const state = State.create({ error });
    const again = State.fromJSON<{ error: Error }>(state.toJSON());
    for (const { data } of [state, again]) {
      expect(Object.getPrototypeOf(data.error)).toBe(TypeError.prototype);
      expect(data.error).toMatchObject({ message: "no", status: 404, stack: error.stack });
      expect(Object.isFrozen(data.error)).toBe(true);
    }
  });

  test("named items of an array are copied with it", () => {
    const item = { a: 1 };
    const list = Object.assign([item], { named: item });
    const { data } = State.create({ list });
    item.a = 2;
    expect(data.list[0]?.a).toBe(1);
    expect(data.list).toHaveProperty("named.a", 1);
  });
});

describe("the fields of a run can't be changed either, nor through its JSON", () => {
  const store = new MemoryStore({ keep: 100 });
  const graph = (breakpoints: { before?: string[]; after?: string[] } = {}) =>
    new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1 }, breakpoints })
      .addNode("first", (state) => pause(state, { reason: "look", ask: "?" }))
      .addNode("second", async (state, context) => {
        await context.pause("ok", { reason: "check", ask: "?" });
        return state;
      })
      .addEdge("first", "second")
      .setEntryPoint("first")
      .setExitPoint("second");
  const begin = () => State.create({ n: 0 });

  test.each<[string, () => Promise<State<{ n: number }>>]>([
    ["a pause that a node returned", () => graph().execute(begin())],
    ["a breakpoint before", () => graph({ before: ["first"] }).execute(begin())],
    [
      "a pause inside a node",
      async () => graph().resume((await graph().execute(begin())).runId, { input: {} }),
    ],
    ["a fork", async () => graph().fork((await graph().execute(begin())).runId, 0)],
  ])("%s", async (_, make) => {
    const state = await make();
    for (const one of [state, await store.load<{ n: number }>(state.runId)]) {
      const { graph: by, parent, pauses, visits, error, ledger } = one;
      const parts = [by, parent, pauses, visits, error, ledger.usage, ledger.nodes];
      const found = parts.flatMap((part) => [...reachable(part)]);
      expect(found.length).toBeGreaterThan(4);
      expect(found.filter((part) => !Object.isFrozen(part))).toEqual([]);
    }
    const before = JSON.stringify(state);
    expect(() => Object.assign(state.toJSON().graph ?? {}, { name: "other" })).toThrow(TypeError);
    expect(JSON.stringify(state)).toBe(before);
  });
});
