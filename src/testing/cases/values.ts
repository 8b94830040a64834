import assert from "node:assert/strict";
import { isWaymarkError } from "../../errors.js";
import { State } from "../../state/state.js";
import type { Case, Notes } from "./case.js";

const values: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  numbers: [0, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1e308, 5e-324],
  bigint: [0n, -12345678901234567890n],
  text: ["", "\u0000", "line\nbreak", "\ud800", "🏔️", "</script>"],
  date: [new Date(0), new Date(Number.NaN), new Date("2030-01-01")],
  map: new Map<unknown, unknown>([
    ["a", new Map([[1, new Set([1n])]])],
    [{ key: new Date(1) }, undefined],
  ]),
  set: new Set<unknown>([undefined, -0, [1]]),
  regexp: /a[/]b/giu,
  url: new URL("https://example.org/a?b=c#d"),
  bytes: [
    new Uint8Array([1, 255]),
    new Float64Array([0.1, Number.NaN]),
    new BigInt64Array([-1n]),
    new ArrayBuffer(2),
  ],
  // biome-ignore lint/suspicious/noSparseArray: it must survive
  sparse: [1, , 3],
  tags: [
    { $date: "2030" },
    { $object: { $map: [] } },
    { $undefined: true },
    { $unknown: 1 },
    { $a: 1, $b: 2 },
  ],
  prototype: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'),
};

/** What went in comes out, or is refused. */
export const roundTrip: readonly Case[] = [
  ...Object.entries(values).map(
    ([name, value]): Case => [
      `keeps exactly: ${name}`,
      async (store) => {
        const state = State.create<Notes>({ topic: "t", any: { nested: [value] } });
        await store.save(state);
        const loaded = await store.load<Notes>(state.runId);
        // As JSON, which distinguishes all types: to Node 20 an invalid date equals only itself.
        assert.deepEqual(loaded.toJSON().data, state.toJSON().data);
        assert.equal(({} as { polluted?: unknown }).polluted, undefined);
      },
    ],
  ),
  [
    "keeps an Error with its type, cause and fields",
    async (store) => {
      const error = Object.assign(new TypeError("outer", { cause: new RangeError("inner") }), {
        retries: 3n,
      });
      const { runId } = await store.save(State.create<Notes>({ topic: "t", any: error }));
      const kept = (await store.load<Notes>(runId)).data.any as typeof error;
      assert.ok(kept instanceof TypeError && kept.cause instanceof RangeError);
      assert.deepEqual(
        [kept.message, kept.cause.message, kept.retries, kept.stack],
        ["outer", "inner", 3n, error.stack],
      );
    },
  ],
  ...(
    [
      ["a function", () => 1],
      ["a symbol", Symbol("s")],
      ["a class instance", new (class Order {})()],
      ["a promise", Promise.resolve()],
    ] as const
  ).map(
    ([name, value]): Case => [
      `refuses ${name} by its path and keeps nothing`,
      async (store) => {
        const state = State.create<Notes>({ topic: "t", any: { order: [0, value] } });
        const error = await store.save(state).catch((thrown: unknown) => thrown);
        assert.ok(isWaymarkError(error, "SERIALIZATION"), String(error));
        assert.equal(error.path, "data.any.order[1]");
        assert.deepEqual(await store.list(), []);
      },
    ],
  ),
];
