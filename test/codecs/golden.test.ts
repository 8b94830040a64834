import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { DocumentCodec, REDACTED } from "waymark/codecs";
import { key } from "./documents.js";

// Written by the first version of format 1. Every later version must read them: never write them anew.
const names = ["plain", "gzip", "brotli", "encrypted", "brotli-encrypted", "redacted"];

describe.each(names)("the %s document of long ago", (name) => {
  const bytes = readFileSync(new URL(`./fixtures/${name}.document`, import.meta.url));

  test("still loads, exactly", async () => {
    const codec = new DocumentCodec({
      encrypt: { current: "new", keys: { new: key(1), old: key(42) } },
      allowPlaintext: true,
    });
    const expected = { runId: "golden", sequence: 3 };
    const { header, state } = await codec.decode<{ error: Error }>(bytes, name, expected);
    expect(header).toMatchObject({
      format: 1,
      runId: "golden",
      sequence: 3,
      step: 3,
      node: "draft",
      status: "in_progress",
      timestamp: "2024-05-06T07:08:09.010Z",
      checkpointId: "c3",
      parentId: "c2",
      reason: "interval",
      graph: "article",
    });
    expect(state.graph).toEqual({ name: "article", version: 2, fingerprint: "f" });
    expect(state.data).toStrictEqual({
      text: "a cairn marks the way ".repeat(60),
      none: undefined,
      when: new Date(1),
      map: new Map([["k", new Set([1n, 0])]]),
      pattern: /c.irn/giu,
      url: new URL("https://example.org/a?b=c"),
      error: expect.any(TypeError),
      numbers: [Number.NaN, Number.POSITIVE_INFINITY, 0.1],
      bytes: new Uint8Array([0, 127, 255]),
      tag: { $date: "mine" },
      token: name === "redacted" ? REDACTED : "secret",
    });
    expect(state.data.error).toMatchObject({ name: "TypeError", message: "no", status: 404 });
  });
});
