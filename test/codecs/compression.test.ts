import { randomBytes } from "node:crypto";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { State } from "waymark";
import type { CodecOptions } from "waymark/codecs";
import { fromDocument, headerOf } from "../../src/checkpoint/records/document.js";
import { serializationError } from "../matchers.js";
import { decode, encode, forge, saved } from "./documents.js";

const text = saved({ text: "one word after another ".repeat(1000) });

function record(bytes: Uint8Array): unknown {
  return headerOf(bytes)?.codec;
}

/** The size of what there is to compress of a State. */
async function contentBytes(state: State<object>): Promise<number> {
  return Buffer.byteLength(fromDocument(await encode({}, state), "", 1).content);
}

describe.each(["gzip", "brotli"] as const)("%s", (algorithm) => {
  test("makes a document smaller and says so in its header", async () => {
    const plain = await encode({}, text);
    const small = await encode({ compress: algorithm }, text);
    expect(small.length * 10).toBeLessThan(plain.length);
    const bytes = await contentBytes(text);
    expect(record(small)).toEqual({ compress: algorithm, bytes });
  });

  test("does not compress what is below the threshold", async () => {
    const bytes = await contentBytes(text);
    const below = { compress: { algorithm, threshold: bytes + 1 } };
    const at = { compress: { algorithm, threshold: bytes } };
    expect(await encode(below, text)).toEqual(await encode({}, text));
    expect(record(await encode(at, text))).toMatchObject({ compress: algorithm });
    expect(record(await encode({ compress: algorithm }, saved({ a: "short" })))).toBeUndefined();
  });

  test("does not compress what would not get smaller", async () => {
    const noise = Array.from(randomBytes(4000), (byte) => String.fromCharCode(35 + (byte % 91)));
    const options = { compress: { algorithm, threshold: 0 } };
    const bytes = await encode(options, saved({ noise: noise.join("") }));
    expect(record(bytes)).toBeUndefined();
    expect((await decode({}, bytes)).data).toEqual({ noise: noise.join("") });
  });

  test("tries harder at a higher level", async () => {
    const words = saved({ words: Array.from({ length: 3000 }, (_, n) => `${(n * 7919) % 1009}`) });
    const size = async (level: number): Promise<number> =>
      (await encode({ compress: { algorithm, level } }, words)).length;
    expect(await size(9)).toBeLessThan(await size(1));
  });

  test("of a large State leaves the event loop free", async () => {
    const large = saved({ list: Array.from({ length: 100_000 }, (_, n) => `item ${n}`) });
    const json = JSON.stringify(large);
    expect(json.length).toBeGreaterThan(1_000_000);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await encode({ compress: { algorithm, level: 9 } }, large);
    clearInterval(timer);
    // On the event loop it would be none.
    expect(turns).toBeGreaterThan(3);
  });
});

function bomb(algorithm: "gzip" | "brotli", claimed: number, real: number): Promise<Uint8Array> {
  const zeros = Buffer.alloc(real);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 5 };
  const packed = algorithm === "gzip" ? gzipSync(zeros) : brotliCompressSync(zeros, { params });
  return encode({ compress: { algorithm, threshold: 0 } }, text).then((bytes) =>
    forge(bytes, (body) =>
      body
        .replace(/"bytes":\d+/, `"bytes":${claimed}`)
        .replace(/"content":".*"/, `"content":"${packed.toString("base64")}"`),
    ),
  );
}

describe.each(["gzip", "brotli"] as const)("a bomb of %s", (algorithm) => {
  test("is refused before it is decompressed if its header gives its size", async () => {
    const document = await bomb(algorithm, 200 * 1024 * 1024, 1000);
    await expect(decode({}, document)).rejects.toThrow(
      serializationError(
        "file.json",
        "is 209715200 bytes once decompressed, more than codec.maxBytes",
      ),
    );
  });

  test.each([100, 1024 * 1024])("is stopped at the %i bytes that it claims", async (claimed) => {
    const document = await bomb(algorithm, claimed, 64 * 1024 * 1024);
    expect(document.length).toBeLessThan(200_000);
    const before = process.memoryUsage().arrayBuffers;
    await expect(decode({}, document)).rejects.toMatchObject({
      code: "CHECKPOINT_CORRUPT",
      expected: `${claimed} bytes`,
      actual: "more",
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
  });

  test("that is smaller than it claims is corrupt", async () => {
    await expect(decode({}, await bomb(algorithm, 2000, 1000))).rejects.toMatchObject({
      code: "CHECKPOINT_CORRUPT",
      expected: "2000 bytes",
      actual: "1000 bytes",
    });
  });

  test("that is not compressed data is corrupt", async () => {
    const document = forge(await bomb(algorithm, 2000, 1000), (body) =>
      body.replace(/"content":".*"/, '"content":"bm9uc2Vuc2U="'),
    );
    await expect(decode({}, document)).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
  });
});

describe("maxBytes", () => {
  const options: CodecOptions = { compress: "gzip", maxBytes: 1000 };

  test("refuses to write what could not be read back", async () => {
    await expect(encode(options, text)).rejects.toThrow(
      serializationError("state", /more than codec.maxBytes \(1000\) allows/),
    );
  });

  test("is the reader's own", async () => {
    const bytes = await encode({ compress: "gzip" }, text);
    await expect(decode({ maxBytes: 1000 }, bytes)).rejects.toThrow(
      serializationError("file.json", "more than codec.maxBytes"),
    );
    expect((await decode({ maxBytes: 30_000 }, bytes)).data).toEqual(text.data);
  });

  test("is no limit for what is not compressed", async () => {
    expect((await decode({ maxBytes: 10 }, await encode({ maxBytes: 10 }, text))).data).toEqual(
      text.data,
    );
  });
});
