import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { configError } from "../matchers.js";

interface Data {
  count: number;
  list: number[];
  map: Map<string, { n: number }>;
  set: Set<number>;
  when: Date;
}

function create(): State<Data> {
  return State.create<Data>({
    count: 1,
    list: [3, 1, 2],
    map: new Map([["a", { n: 1 }]]),
    set: new Set([1]),
    when: new Date(0),
  });
}

describe("update", () => {
  test("writes to a draft of everything, and leaves the original alone", () => {
    const state = create();
    const before = JSON.stringify(state);
    const next = state.update((draft) => {
      draft.count += 1;
      draft.list.sort();
      draft.map.set("b", { n: 2 });
      const a = draft.map.get("a");
      if (a) a.n = 10;
      draft.set.delete(1);
      draft.set.add(2);
      draft.when = new Date(1);
    });
    expect(next.data).toEqual({
      count: 2,
      list: [1, 2, 3],
      map: new Map([
        ["a", { n: 10 }],
        ["b", { n: 2 }],
      ]),
      set: new Set([2]),
      when: new Date(1),
    });
    expect(JSON.stringify(state)).toBe(before);
    expect(State.fromJSON<Data>(next.toJSON()).data).toEqual(next.data);
  });

  test("that changes nothing gives the same State", () => {
    const state = create();
    expect(state.update(() => {})).toBe(state);
    expect(state.update((draft) => void Object.assign(draft, { count: 1 }))).toBe(state);
    expect(state.update((draft) => draft)).toBe(state);
    expect(state.update((draft) => void draft.list.at(0))).toBe(state);
  });

  test("may return new data in place of the draft", () => {
    const next = create().update((draft) => ({ ...draft, count: 9 }));
    expect(next.data).toEqual({ ...create().data, count: 9 });
    expect(Object.isFrozen(next.data)).toBe(true);
  });

  test("keeps nothing of its draft alive", () => {
    let leaked: number[] = [];
    const next = create().update((draft) => {
      leaked = draft.list;
      draft.list.push(4);
    });
    expect(() => leaked.push(5)).toThrow(TypeError);
    expect(next.data.list).toEqual([3, 1, 2, 4]);
  });

  test("accepts invalid data, which only a save refuses", () => {
    const state = State.create<Record<string, unknown>>({}).update((draft) => {
      draft.run = () => {};
    });
    expect(() => state.toJSON()).toThrow("data.run is the function");
  });

  test("takes a cycle and 100,000 levels as data", () => {
    const state = State.create<Record<string, unknown>>({});
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    let deep: object = {};
    for (let level = 0; level < 100_000; level++) deep = { deep };
    for (const value of [cycle, deep]) {
      const next = state.update((draft) => {
        draft.value = value;
      });
      expect(() => next.toJSON()).toThrow(/^data\.value.* (contains itself|is nested more than)/);
    }
  });

  test.each<[string, (draft: Data) => unknown, RegExp]>([
    ["is asynchronous", async () => {}, /must be synchronous; got a Promise/],
    ["changes its draft and is asynchronous", async (d) => void d.list.push(1), /synchronous/],
    ["returns a number", () => 5, /must change its draft or return new data; got 5/],
    ["returns what a change gave it", (d) => d.list.push(1), /got 4: write \(draft\) => \{ … \}/],
    ["returns null", () => null, /got null/],
    ["changes its draft and returns part of it", (d) => d.map.set("b", { n: 1 }), /not both/],
    [
      "changes its draft and returns data",
      (d) => {
        d.count = 2;
        return { count: 3 };
      },
      /not both/,
    ],
  ])("refuses a recipe that %s", (_, recipe, message) => {
    expect(() => create().update(recipe)).toThrow(configError("recipe", message));
  });

  test("refuses a recipe that continues after it was refused, without an unhandled rejection", async () => {
    const rejections: unknown[] = [];
    const note = (error: unknown): void => void rejections.push(error);
    process.on("unhandledRejection", note);
    const recipe = async (draft: Data): Promise<void> => {
      await Promise.resolve();
      draft.count = 2;
    };
    expect(() => create().update(recipe)).toThrow(configError("recipe"));
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(rejections).toEqual([]);
  });

  test.each<[unknown]>([[[1]], [new Map()], [new Date()]])("refuses %o as new data", (result) => {
    expect(() => create().update(() => result)).toThrow(
      configError("data", "must be a plain object"),
    );
  });

  test.each<[unknown]>([[undefined], [null], [{ count: 2 }]])(
    "refuses %o as a recipe",
    (recipe) => {
      expect(() => create().update(recipe as never)).toThrow(
        configError("recipe", "must be a function"),
      );
    },
  );

  test("passes on what the recipe throws", () => {
    const mine = new RangeError("mine");
    expect(() =>
      create().update(() => {
        throw mine;
      }),
    ).toThrow(mine);
  });
});
