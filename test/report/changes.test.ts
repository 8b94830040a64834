import { expect, test } from "vitest";
import { changesBetween } from "../../src/report/changes.js";

test("lists changes down to the single values", () => {
  expect(changesBetween({ a: [1, 2, 3], b: { c: 1 } }, { a: [1, 9, 3], b: { d: 1 } })).toEqual([
    { op: "change", path: "a.1", before: 2, after: 9 },
    { op: "remove", path: "b.c", before: 1 },
    { op: "add", path: "b.d", after: 1 },
  ]);
  expect(changesBetween({ a: [1, 2, 3] }, { a: [1, 3] })).toEqual([
    { op: "remove", path: "a.1", before: 2 },
  ]);
  expect(changesBetween({ a: [1, 2, 3, 4] }, { a: [3, 4, 5] })).toEqual([
    { op: "remove", path: "a.0", before: 1 },
    { op: "remove", path: "a.1", before: 2 },
    { op: "add", path: "a.2", after: 5 },
  ]);
  expect(changesBetween({ a: [{ x: 1 }] }, { a: [{ x: 2 }] })).toEqual([
    { op: "change", path: "a.0.x", before: 1, after: 2 },
  ]);
  expect(changesBetween({ a: null }, { a: {} })).toEqual([
    { op: "change", path: "a", before: null, after: {} },
  ]);
  expect(changesBetween([1], { 0: 1 })).toHaveLength(1);

  const made = (when: string) => ({ when: { $date: when }, names: { $map: [["a", { n: when }]] } });
  expect(changesBetween(made("1"), made("2"))).toEqual([
    { op: "change", path: "when", before: { $date: "1" }, after: { $date: "2" } },
    { op: "change", path: "names.a.n", before: "1", after: "2" },
  ]);
  expect(changesBetween({ $map: [[1, 2]] }, { $map: [[1, 3]] })).toHaveLength(1);
  expect(changesBetween({ $object: { $a: 1 } }, { $object: { $a: 2 } })).toEqual([
    { op: "change", path: "$a", before: 1, after: 2 },
  ]);
});
