import * as fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { always, and, keyEquals, keyExists, not, or, type Predicate, State } from "waymark";
import { configError } from "../matchers.js";

interface Data {
  done?: boolean | undefined;
  score?: number;
  list: number[];
}

const state = State.create<Data>({ done: undefined, score: Number.NaN, list: [1] });
const yes: Predicate<Data> = () => true;
const no: Predicate<Data> = () => false;

test("always is true", () => {
  expect(always()).toBe(true);
});

test("keyExists tests for the key, not for its value", () => {
  const bare = State.create<Data>({ list: [] });
  expect([keyExists<Data>("done")(state), keyExists<Data>("done")(bare)]).toEqual([true, false]);
  expect(keyExists<Record<string, unknown>>("toString")(State.create({}))).toBe(false);
});

describe("keyEquals", () => {
  test.each<[string, Predicate<Data>, boolean]>([
    ["the same value", keyEquals("score", Number.NaN), true],
    ["another value", keyEquals("score", 1), false],
    ["undefined that is there", keyEquals("done", undefined), true],
    ["a copy of an object", keyEquals("list", [1]), false],
    ["the State's own object", keyEquals("list", state.data.list as number[]), true],
  ])("%s", (_, predicate, expected) => {
    expect(predicate(state)).toBe(expected);
  });

  test("is false for a missing key, whatever the value", () => {
    expect(keyEquals<Data, "done">("done", undefined)(State.create<Data>({ list: [] }))).toBe(
      false,
    );
    expect(keyEquals<Data, "score">("score", 0)(State.create<Data>({ score: -0, list: [] }))).toBe(
      true,
    );
  });
});

describe("not, and, or", () => {
  test.each<[string, Predicate<Data>, boolean]>([
    ["not yes", not(yes), false],
    ["not no", not(no), true],
    ["and of none", and(), true],
    ["or of none", or(), false],
    ["and of one", and(no), false],
    ["or of one", or(yes), true],
    ["and", and(yes, yes, no), false],
    ["or", or(no, no, yes), true],
    ["composed", and(or(no, not(no)), not(and(yes, no)), always), true],
    [
      "of the others",
      or(and(keyExists("score"), keyEquals("score", 1)), not(keyExists("done"))),
      false,
    ],
  ])("%s", (_, predicate, expected) => {
    expect(predicate(state)).toBe(expected);
  });

  test("ask no further than they must, and give each the State", () => {
    const asked = vi.fn(yes);
    and(no, asked)(state);
    or(yes, asked)(state);
    expect(asked).not.toHaveBeenCalled();
    and(asked)(state);
    expect(asked).toHaveBeenCalledExactlyOnceWith(state);
  });

  test.each([not, and, or])("refuse what is no function: %o", (combine) => {
    for (const wrong of [undefined, null, true, "done"]) {
      const make = () => combine(wrong as never);
      expect(make).toThrow(expect.objectContaining({ code: "CONFIG" }));
    }
    expect(() => and(yes, 5 as never)).toThrow(configError("predicates[1]", "must be a function"));
  });

  test.each([not, and, or])(
    "take no promise for an answer, nor anything like one: %o",
    (combine) => {
      for (const wrong of [Promise.resolve(false), undefined, 0, "no"]) {
        const predicate = combine((() => wrong) as never);
        expect(() => predicate(state)).toThrow(
          configError("predicate", "must return true or false; got"),
        );
      }
    },
  );

  test("obey De Morgan", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (answers) => {
        const predicates = answers.map(
          (answer): Predicate<Data> =>
            () =>
              answer,
        );
        const negated = predicates.map((predicate) => not(predicate));
        expect(not(and(...predicates))(state)).toBe(or(...negated)(state));
        expect(not(or(...predicates))(state)).toBe(and(...negated)(state));
      }),
    );
  });
});
