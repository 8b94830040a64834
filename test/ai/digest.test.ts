import { describe, expect, test } from "vitest";
import { copyOf } from "../../src/ai/copy.js";
import { digestOf } from "../../src/ai/digest.js";

const hash = (value: unknown): string => digestOf(value, []).hash;

/** Values that all differ, each made anew. */
const values: readonly (() => unknown)[] = [
  () => null,
  () => undefined,
  () => true,
  () => 1,
  () => "1",
  () => 1n,
  () => [1],
  () => ({ a: 1, b: [2] }),
  () => new Uint8Array([1, 2]),
  () => new Uint8Array([1, 3]).buffer,
  () => new Map([["a", { b: 1 }]]),
  () => new Set(["a"]),
  () => /a/g,
  () => new RangeError("a"),
  () => new Date(0),
  () => new URL("https://example.org/"),
];

describe("the digest of a call", () => {
  test("is the same for equal values, whatever the order of their keys", () => {
    for (const value of values) expect(hash(value())).toBe(hash(value()));
    expect(hash({ a: 1, b: 2 })).toBe(hash({ b: 2, a: 1, c: undefined }));
  });

  test("differs for different values", () => {
    expect(new Set(values.map((value) => hash(value()))).size).toBe(values.length);
    expect(new Set([[1, 2], [2, 1], [1], []].map((list) => digestOf("s", list).hash)).size).toBe(4);
  });

  test("ignores what can't be sent", () => {
    expect(hash([() => 1])).toBe(hash([undefined]));
    expect(hash([Symbol("a")])).toBe(hash([undefined]));
  });

  test("recognizes the inputs that it continues", () => {
    const { prefixes } = digestOf("settings", ["a", "b"]);
    expect(prefixes.has(digestOf("settings", ["a"]).hash)).toBe(true);
    expect(prefixes.has(digestOf("settings", ["b"]).hash)).toBe(false);
    expect(prefixes.has(digestOf("others", ["a"]).hash)).toBe(false);
  });
});

test("a value from a checkpoint is copied with its types, so that the caller may change it", () => {
  for (const value of values) {
    const [given, copy] = [value(), copyOf(value())];
    expect(copy).toEqual(given);
    expect(Object.getPrototypeOf(Object(copy))).toBe(Object.getPrototypeOf(Object(given)));
  }
  const frozen = Object.freeze({ list: Object.freeze([1]), bytes: Buffer.from([1]) });
  const copy = copyOf(frozen) as { list: number[]; bytes: Uint8Array };
  copy.list.push(2);
  copy.bytes[0] = 9;
  expect([frozen.list, frozen.bytes[0]]).toEqual([[1], 1]);
});
