import { createHash } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { CheckpointCorruptionError } from "waymark";
import type { CodecOptions } from "waymark/codecs";
import { RecordCodec } from "../../../src/checkpoint/records/codec.js";
import { FRAME_BYTES, fromDocument, headerOf } from "../../../src/checkpoint/records/document.js";
import { decode, encode, forge, key, runId, saved } from "../../codecs/documents.js";
import { configError, serializationError } from "../../matchers.js";

const state = saved({ topic: "cairns", when: new Date(0) });

function corrupt(expected: unknown, actual: unknown): unknown {
  return expect.objectContaining({
    name: "CheckpointCorruptionError",
    code: "CHECKPOINT_CORRUPT",
    message: expect.stringContaining("file.json"),
    expected,
    actual,
  });
}

describe("a document", () => {
  test("is one JSON object on three lines, the content in clear", async () => {
    const text = Buffer.from(await encode({}, state)).toString();
    expect(text.split("\n")).toHaveLength(4);
    expect(text.split("\n").map((line) => line.slice(0, 9))).toEqual([
      '{"waymark',
      '"header":',
      '"content"',
      "",
    ]);
    const { waymark, sha256, header, content } = JSON.parse(text);
    const hashed = `${JSON.stringify(header)}\n${JSON.stringify(content)}`;
    expect([waymark, sha256]).toEqual([1, createHash("sha256").update(hashed).digest("hex")]);
    expect(header).toMatchObject({ format: 1, runId, sequence: 1, checkpointId: "c1" });
    expect(content).toMatchObject({ data: { topic: "cairns" } });
    expect(text.length).toBe(hashed.length - 1 + FRAME_BYTES);
  });

  test("returns the whole State and its header", async () => {
    const bytes = await encode({}, state);
    const loaded = await decode<{ when: Date }>({}, bytes);
    expect(loaded.toJSON()).toEqual(state.toJSON());
    expect(loaded.data.when).toEqual(new Date(0));
    const { header } = fromDocument(bytes, "file.json", 1);
    expect(headerOf(bytes)).toEqual(JSON.parse(header));
  });

  test("reads from any kind of bytes", async () => {
    const bytes = await encode({}, state);
    const apart = new Uint8Array(bytes.length + 7);
    apart.set(bytes, 7);
    expect((await decode({}, apart.subarray(7))).data).toEqual(state.data);
  });

  test("has the same hash where Node can't hash in one call", async () => {
    vi.doMock("node:crypto", async (original) => ({
      ...(await original<object>()),
      hash: undefined,
    }));
    vi.resetModules();
    const older = await import("../../../src/checkpoint/records/codec.js");
    vi.doUnmock("node:crypto");
    vi.resetModules();
    const newer = await import("../../../src/checkpoint/records/codec.js");
    const expected = createHash("sha256").update("{}\n[]").digest("hex");
    expect([older.hashOf("{}", "[]"), newer.hashOf("{}", "[]")]).toEqual([expected, expected]);
  });

  test("of a State that can't be saved names the path", async () => {
    await expect(encode({}, saved({ a: { f: () => 1 } }))).rejects.toThrow(
      serializationError("data.a.f", "is the function f"),
    );
  });
});

describe("a header", () => {
  test("is read from the first bytes alone", async () => {
    const bytes = await encode({}, saved({ text: "x".repeat(10_000) }));
    expect(headerOf(bytes.subarray(0, 4096))).toMatchObject({ runId, sequence: 1 });
  });

  test("is undefined until it is complete", async () => {
    const bytes = await encode({}, state);
    const end = Buffer.from(bytes).indexOf("\n", 100);
    for (let length = 0; length <= end; length++) {
      expect(headerOf(bytes.subarray(0, length))).toBeUndefined();
    }
    expect(headerOf(bytes.subarray(0, end + 1))).toBeDefined();
  });

  test.each([
    ['"sequence":1', '"sequence":-1'],
    ['"sequence":1', '"sequence":"1"'],
    ['"status":"pending"', '"status":"lost"'],
    ['"runId":"run-1",', ""],
    ['"graph":""', '"graph":"","codec":null'],
    ['"graph":""', '"graph":"","codec":{"compress":"gzip"}'],
    ['"graph":""', '"graph":"","codec":{"compress":"zip","bytes":1}'],
    ['"graph":""', '"graph":"","codec":{"encrypt":"aes-256-gcm"}'],
    ['"graph":""', '"graph":"","codec":{"compress":null}'],
    ['"graph":""', '"graph":"","codec":{"encrypt":null}'],
    ['"graph":""', '"graph":"","codec":{"key":"k1"}'],
    ['"graph":""', '"graph":"","codec":{"redacted":1}'],
    ['"graph":""', '"graph":"","codec":[]'],
    ['"graph":""', '"graph":"","codec":{"bytes":1e300,"compress":"gzip"}'],
    ['"header":{', '"header":['],
    ['"header":{', '"leader":{'],
    ["},\n", "} \n"],
  ])("with %s turned into %s is none", async (from, to) => {
    const forged = forge(await encode({}, state), (body) => body.replace(from, to));
    expect(headerOf(forged)).toBeUndefined();
    await expect(decode({}, forged)).rejects.toThrow(CheckpointCorruptionError);
  });

  test("of any other file is undefined", () => {
    for (const text of ["", "{}", "null", '{"waymark":2,"sha256":"', "\n\n\n", "PK\u0003\u0004"]) {
      expect(headerOf(Buffer.from(text))).toBeUndefined();
    }
  });
});

describe("what is not a document", () => {
  test.each([
    ["an empty file", "", "an empty file"],
    ["other JSON", '{"name":"waymark","version":"0.1.0"}', "another file"],
    ["zeros", "\0".repeat(5000), "another file"],
  ])("%s is corrupt", async (_name, text, found) => {
    await expect(decode({}, Buffer.from(text))).rejects.toThrow(
      corrupt("a waymark document", found),
    );
  });

  test("names the hash that was written and the hash that was found", async () => {
    const bytes = Buffer.from(await encode({}, state));
    const written = bytes.toString("latin1", 23, 87);
    bytes[200] = (bytes[200] ?? 0) ^ 1;
    await expect(decode({}, bytes)).rejects.toThrow(
      corrupt(written, expect.stringMatching(/^[\da-f]{64}$/)),
    );
  });

  test("of a newer version is refused, not reported as corrupt", async () => {
    const newer = `{"waymark":2,"sha512":"…",\n"header":{"format":2},\n"content":{}}\n`;
    await expect(decode({}, Buffer.from(newer))).rejects.toThrow(
      serializationError("file.json", "format 2: a newer waymark wrote it, this one reads up to 1"),
    );
    const huge = `{"waymark":123456789,"x":1}`;
    await expect(decode({}, Buffer.from(huge))).rejects.toThrow(
      serializationError("file.json", "format 123456789"),
    );
  });

  test.each<[string, { runId: string; sequence?: number }, string, string]>([
    ["run", { runId: "run-2" }, 'run "run-2"', 'run "run-1"'],
    ["place", { runId, sequence: 2 }, "sequence 2", "sequence 1"],
  ])("is corrupt when it is of another %s", async (_what, expected, wants, found) => {
    const bytes = await encode({}, state);
    await expect(decode({}, bytes, expected)).rejects.toThrow(corrupt(wants, found));
  });

  test.each([
    ['"content":', '"contents":', "a waymark document"],
    ["}\n", "}", "a waymark document"],
    ['"data":', '"data"', "JSON"],
  ])("is corrupt when %j is %j", async (from, to, expected) => {
    const forged = forge(await encode({}, state), (body) => {
      const at = body.lastIndexOf(from);
      return body.slice(0, at) + to + body.slice(at + from.length);
    });
    await expect(decode({}, forged)).rejects.toThrow(
      corrupt(expect.stringContaining(expected), expect.any(String)),
    );
  });
});

const configurations: readonly (readonly [string, CodecOptions])[] = [
  ["in clear", {}],
  ["compressed", { compress: { algorithm: "gzip", threshold: 0 } }],
  ["encrypted", { encrypt: { current: "k", keys: { k: key(1) } } }],
  ["both", { compress: "brotli", encrypt: { current: "k", keys: { k: key(1) } } }],
];

describe.each(configurations)("a document %s", (_name, options) => {
  const text = saved({ list: ["a", "a", "a", "ä", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] });

  test("is corrupt if any bit of it is flipped", async () => {
    const bytes = await encode(options, text);
    for (let at = 0; at < bytes.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const flipped = Uint8Array.from(bytes);
        flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
        const error = await decode(options, flipped).catch((thrown: unknown) => thrown);
        if (!(error instanceof CheckpointCorruptionError)) {
          expect.fail(`bit ${bit} of byte ${at}: ${String(error)}`);
        }
      }
    }
  });

  test("is corrupt if it is cut off anywhere, or followed by more", async () => {
    const bytes = await encode(options, text);
    for (let length = 0; length < bytes.length; length++) {
      await expect(decode(options, bytes.subarray(0, length))).rejects.toThrow(
        CheckpointCorruptionError,
      );
    }
    await expect(decode(options, Buffer.concat([bytes, Buffer.from("\n")]))).rejects.toThrow(
      CheckpointCorruptionError,
    );
  });
});

describe("the options of a codec", () => {
  test.each<[string, unknown, string, string]>([
    ["a misspelt one", { compres: "gzip" }, "codec.compres", "is not an option"],
    ["no object", "gzip", "codec", "must be an object"],
    ["an unknown algorithm", { compress: "zip" }, "codec.compress", 'must be "gzip" or "brotli"'],
    ["no algorithm", { compress: { level: 1 } }, "codec.compress.algorithm", "must be"],
    ["gzip 0", { compress: { algorithm: "gzip", level: 0 } }, "codec.compress.level", "1 to 9"],
    [
      "brotli 12",
      { compress: { algorithm: "brotli", level: 12 } },
      "codec.compress.level",
      "0 to 11",
    ],
    ["a negative size", { maxBytes: -1 }, "codec.maxBytes", "must be an? (whole number|integer)"],
    ["no flag", { allowPlaintext: "yes" }, "codec.allowPlaintext", "must be true or false"],
    ["no list", { redact: "*.token" }, "codec.redact", "must be an array of paths"],
    ["an empty key", { redact: ["data..x"] }, "codec.redact[0]", "must be keys joined by dots"],
  ])("with %s are refused", (_name, options, option, message) => {
    expect(() => new RecordCodec(options as CodecOptions, 1)).toThrow(configError(option, message));
  });
});
