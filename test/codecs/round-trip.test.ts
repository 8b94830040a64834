import { isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CodecOptions } from "waymark/codecs";
import { stateData } from "../arbitraries.js";
import { decode, encode, key, saved } from "./documents.js";

const keys = { k1: key(1), k2: Buffer.from(key(2)).toString("base64"), k3: async () => key(3) };
const compressions: readonly CodecOptions[] = [
  {},
  { compress: "gzip" },
  { compress: { algorithm: "gzip", level: 9, threshold: 0 } },
  { compress: "brotli" },
  { compress: { algorithm: "brotli", level: 0, threshold: 0 } },
];
const encryptions: readonly CodecOptions[] = [
  {},
  { encrypt: { current: "k1", keys } },
  { encrypt: { current: "k2", keys } },
  { encrypt: { current: "k3", keys } },
];
const configurations = compressions.flatMap((compress) =>
  encryptions.map((encrypt) => ({ ...compress, ...encrypt })),
);

describe.each(configurations.map((options) => [nameOf(options), options] as const))(
  "through %s",
  (_name, options) => {
    test("every value is restored exactly", async () => {
      await fc.assert(
        fc.asyncProperty(stateData, async (data) => {
          const state = saved(data);
          const loaded = await decode(options, await encode(options, state));
          expect(JSON.stringify(loaded)).toBe(JSON.stringify(state));
          expect(isDeepStrictEqual(loaded.data, state.data)).toBe(true);
        }),
        { numRuns: 50 },
      );
    });

    test("a large State is restored exactly", async () => {
      const state = saved({ list: Array.from({ length: 5000 }, (_, n) => ({ n, text: `ä${n}` })) });
      expect((await decode(options, await encode(options, state))).data).toEqual(state.data);
    });
  },
);

test("any configuration reads what any other wrote, given the keys", async () => {
  const state = saved({ text: "a word and another word and another word".repeat(50) });
  for (const writer of configurations) {
    const bytes = await encode(writer, state);
    for (const reader of configurations) {
      const withKeys = { encrypt: { current: "k1", keys }, allowPlaintext: true, ...reader };
      expect((await decode(withKeys, bytes)).data).toEqual(state.data);
    }
  }
});

function nameOf({ compress, encrypt }: CodecOptions): string {
  const name = typeof compress === "object" ? `${compress.algorithm} ${compress.level}` : compress;
  return `${name ?? "no compression"} and ${encrypt?.current ?? "no key"}`;
}
