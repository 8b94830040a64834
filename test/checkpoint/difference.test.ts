import * as fc from "fast-check";
import { applyPatches, enablePatches, type Patch } from "immer";
import { describe, expect, test } from "vitest";
import {
  apply,
  type Change,
  difference,
  recordDifference,
  weigh,
} from "../../src/checkpoint/difference.js";
import { encode } from "../../src/state/encode.js";
import { freezeCopy } from "../../src/state/freeze-copy.js";
import { stateData } from "../arbitraries.js";

enablePatches();

const key = fc.oneof(
  fc.constantFrom("a", "b", "c", "d", "0", "1", "10", "length", "__proto__", "constructor", "$map"),
  fc.string({ maxLength: 3 }),
);

const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, 0, 1, 2, "", "x"),
    fc.string({ maxLength: 4 }),
    fc.array(tie("json"), { maxLength: 6 }),
    fc.dictionary(key, tie("json"), { maxKeys: 5, noNullPrototype: true }),
  ),
}));

const copy = <T>(tree: T): T => JSON.parse(JSON.stringify(tree)) as T;

/** Both sides as text, so that the order of keys counts too. */
function checkLaw(before: unknown, after: unknown): Change[] {
  const changes = copy(difference(before, after));
  expect(JSON.stringify(apply(copy(before), copy(changes)))).toBe(JSON.stringify(after));
  return changes;
}

function bytesOf(changes: readonly Change[]): number {
  return JSON.stringify(changes).length;
}

const message = (n: number): { id: string; text: string } => ({
  id: `m${n}`,
  text: "Cairns mark the way where the path itself can not be seen.",
});
const list = Array.from({ length: 1000 }, (_, n) => message(n));

/** Changes a tree somewhere, and shares the rest with what it was. */
function edited(tree: unknown, at: readonly number[], value: unknown): unknown {
  const [first = 0, ...rest] = at;
  if (Array.isArray(tree)) {
    const index = tree.length === 0 ? 0 : first % tree.length;
    const kinds = [
      () => tree.toSpliced(index, 0, value),
      () => tree.toSpliced(index, 1 + (first % 3)),
      () => tree.toSpliced(index, first % 4, value, value),
      () => (tree.length === 0 ? [value] : tree.with(index, edited(tree[index], rest, value))),
      () => tree.toReversed(),
    ];
    return kinds[(first >> 2) % kinds.length]?.();
  }
  if (typeof tree !== "object" || tree === null || rest.length === 0) return value;
  const entries = Object.entries(tree);
  const index = entries.length === 0 ? 0 : first % entries.length;
  const [name = "a", old] = entries[index] ?? [];
  const kinds = [
    () => [...entries, [`k${first % 7}`, value]],
    () => entries.toSpliced(index, 1),
    () => entries.map((entry, i) => (i === index ? [name, edited(old, rest, value)] : entry)),
  ];
  return Object.fromEntries(kinds[(first >> 2) % kinds.length]?.() as [string, unknown][]);
}

describe("difference", () => {
  test("applied to the one it makes the other, whatever they are", () => {
    fc.assert(
      fc.property(json, json, (before, after) => {
        checkLaw(copy(before), copy(after));
      }),
      { numRuns: 1000 },
    );
  });

  test("the same for trees that share unchanged parts", () => {
    const edit = fc.tuple(fc.array(fc.nat(200), { minLength: 1, maxLength: 4 }), json);
    fc.assert(
      fc.property(json, fc.array(edit, { maxLength: 6 }), (first, edits) => {
        let before: unknown = copy(first);
        for (const [at, value] of edits) {
          const after = edited(before, at, copy(value));
          checkLaw(before, after);
          before = after;
        }
      }),
      { numRuns: 1000 },
    );
  });

  test("the same for every value that a State can hold, by its exact encoding", () => {
    fc.assert(
      fc.property(stateData, stateData, (one, other) => {
        const known = new WeakMap<object, unknown>();
        const before = encode(freezeCopy(one), "data", known);
        const after = encode(freezeCopy({ ...one, ...other }), "data", known);
        expect(JSON.stringify(after)).toBe(
          JSON.stringify(encode(freezeCopy({ ...one, ...other }), "data")),
        );
        checkLaw(before, after);
      }),
      { numRuns: 500 },
    );
  });

  test("immer's applyPatches understands it", () => {
    const plain = fc.dictionary(
      fc.constantFrom("a", "b", "c", "0"),
      fc.oneof(fc.array(fc.nat(5)), fc.dictionary(fc.constantFrom("x", "y"), fc.nat(3))),
      { noNullPrototype: true },
    );
    fc.assert(
      fc.property(plain, plain, (before, after) => {
        const changes = difference(before, after) as Patch[];
        expect(applyPatches(before, changes)).toEqual(after);
      }),
      { numRuns: 500 },
    );
  });

  test("between records does not depend on the order of their fields", () => {
    const record = fc.dictionary(key, json, { maxKeys: 8, noNullPrototype: true });
    fc.assert(
      fc.property(record, record, fc.boolean(), (one, other, isKept) => {
        const before = copy(one);
        const after = isKept ? copy({ ...other, ...one }) : copy(other);
        const changes = copy(recordDifference(before, after));
        expect(apply(copy(before), changes)).toEqual(after);
      }),
      { numRuns: 500 },
    );
  });

  test("between records is small if a field is added before unchanged ones", () => {
    const changes = recordDifference(
      { visits: {}, data: list },
      { visits: {}, once: 1, data: list },
    );
    expect(changes).toEqual([{ op: "add", path: ["once"], value: 1 }]);
  });

  test("of equal trees is empty", () => {
    expect(difference(list, list)).toEqual([]);
    expect(difference({ list, n: 1 }, { n: 1, list: copy(list) })).not.toEqual([]);
    expect(difference({ list, n: 1 }, { list: copy(list), n: 1 })).toEqual([]);
  });

  test.each([
    ["an item is appended", [...list, message(1000)], 1],
    ["an item in the middle is replaced", list.with(500, message(-1)), 1],
    ["three items are put into the middle", list.toSpliced(500, 0, ...[1, 2, 3].map(message)), 3],
    ["three items are taken out of the middle", list.toSpliced(500, 3), 3],
    ["the oldest goes when a new one comes", [...list.slice(1), message(1000)], 2],
    ["most are cut off at the end", list.slice(0, 10), 1],
    ["two far apart are taken out", list.toSpliced(900, 1).toSpliced(100, 1), 2],
  ])("costs what changed when %s", (_, after, count) => {
    const changes = checkLaw({ list }, { list: after });
    expect(changes.length).toBeLessThanOrEqual(2 * count);
    expect(bytesOf(changes)).toBeLessThan(200 * count);
  });

  test("a field deep inside a long list is one change", () => {
    const after = list.with(7, { ...message(7), text: "new" });
    expect(difference({ list }, { list: after })).toEqual([
      { op: "replace", path: ["list", 7, "text"], value: "new" },
    ]);
  });

  test("many small changes are written as one if that is shorter", () => {
    const before = Array.from({ length: 100 }, (_, n) => n);
    expect(
      difference(
        before,
        before.map((n) => n + 1000),
      ),
    ).toHaveLength(1);
  });

  test("the weight of a value is about the length of its JSON, and counting stops at a limit", () => {
    const length = JSON.stringify(list).length;
    expect(weigh(list)).toBeGreaterThan(length * 0.9);
    expect(weigh(list)).toBeLessThan(length * 1.1);
    expect(weigh(list, 1000)).toBeLessThan(2000);
  });

  test("a key can't reach anything outside the tree", () => {
    const changes: Change[] = [{ op: "add", path: ["__proto__", "polluted"], value: true }];
    expect(() => apply({}, changes)).toThrow("leads nowhere");
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(JSON.stringify(apply({}, [{ op: "add", path: ["__proto__"], value: 1 }]))).toBe(
      '{"__proto__":1}',
    );
  });

  test.each<[string, unknown, Change]>([
    ["an index past the end", { a: [1] }, { op: "replace", path: ["a", 1], value: 0 }],
    ["a gap", { a: [1] }, { op: "add", path: ["a", 3], value: 0 }],
    ["a longer array", { a: [1] }, { op: "replace", path: ["a", "length"], value: 1e9 }],
    ["a key that is not there", {}, { op: "remove", path: ["a"] }],
    ["a value in its way", { a: 1 }, { op: "add", path: ["a", "b"], value: 0 }],
    ["no root", 1, { op: "remove", path: [] }],
  ])("refuses a change that does not fit: %s", (_, tree, change) => {
    expect(() => apply(copy(tree), [change])).toThrow(
      expect.objectContaining({ code: "SERIALIZATION" }),
    );
  });
});
