import { createSecretKey } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { State, StateGraph } from "waymark";
import type { CodecOptions, KeySource } from "waymark/codecs";
import { FileStore } from "waymark/stores/file";
import { headerOf } from "../../src/checkpoint/records/document.js";
import { decrypt, encrypt } from "../../src/codecs/encryption.js";
import { configError, serializationError } from "../matchers.js";
import { DocumentCodec, decode, encode, forge, key, runId, saved } from "./documents.js";

const secret = saved({ password: "correct horse" });

function ring(current: string, keys: Record<string, KeySource>): CodecOptions {
  return { encrypt: { current, keys } };
}

describe("AES-256-GCM", () => {
  // Test cases 13 to 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega).
  const long = {
    key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
    nonce: "cafebabefacedbaddecaf888",
    text:
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" +
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
    cipher:
      "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa" +
      "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
  };
  const zero = { key: "00".repeat(32), nonce: "00".repeat(12) };

  test.each([
    [{ ...zero, text: "", associated: "", cipher: "", tag: "530f8afbc74536b9a963b4f1c4cb738b" }],
    [
      {
        ...zero,
        text: "00".repeat(16),
        associated: "",
        cipher: "cea7403d4d606b6e074ec5d3baf39d18",
        tag: "d0d1c8a799996bf0265b98b5d48ab919",
      },
    ],
    [{ ...long, associated: "", tag: "b094dac5d93471bdec1a502270e3cc6c" }],
    [
      {
        ...long,
        text: long.text.slice(0, 120),
        cipher: long.cipher.slice(0, 120),
        associated: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        tag: "76fc6ece0f4e1768cddf8853bb2d551b",
      },
    ],
  ])("gives the known answer %#", (known) => {
    const secretKey = createSecretKey(known.key, "hex");
    const nonce = Buffer.from(known.nonce, "hex");
    const associated = Buffer.from(known.associated, "hex");
    const text = Buffer.from(known.text, "hex");
    const sealed = encrypt(secretKey, nonce, associated, text);
    expect(Buffer.from(sealed).toString("hex")).toBe(known.cipher + known.tag);
    expect(decrypt(secretKey, nonce, associated, sealed)).toEqual(text);
  });

  test("opens nothing that is shorter than its tag, or has another nonce's length", () => {
    const secretKey = createSecretKey(key(1));
    const none = new Uint8Array();
    expect(decrypt(secretKey, new Uint8Array(12), none, new Uint8Array(15))).toBeUndefined();
    expect(decrypt(secretKey, new Uint8Array(11), none, new Uint8Array(32))).toBeUndefined();
  });
});

describe("an encrypted document", () => {
  test("shows ids and progress, and nothing of the data", async () => {
    const bytes = await encode(ring("k1", { k1: key(1) }), secret);
    const text = Buffer.from(bytes).toString();
    expect(text).not.toMatch(/password|correct|horse/);
    expect(headerOf(bytes)).toMatchObject({
      runId,
      sequence: 1,
      status: "pending",
      codec: {
        encrypt: "aes-256-gcm",
        key: "k1",
        check: expect.stringMatching(/^[\da-f]{16}$/),
        nonce: expect.stringMatching(/^[\w+/]{16}$/),
      },
    });
  });

  test("has another nonce and other bytes each time", async () => {
    const options = ring("k1", { k1: key(1) });
    const nonces = new Set<unknown>();
    for (let time = 0; time < 100; time++) {
      nonces.add(headerOf(await encode(options, secret))?.codec?.nonce);
    }
    expect(nonces.size).toBe(100);
  });

  test("takes its key as bytes, base64, base64url or from a function", async () => {
    const bytes = await encode(ring("k", { k: key(250) }), secret);
    const base64 = Buffer.from(key(250)).toString("base64");
    const url = Buffer.from(key(250)).toString("base64url");
    for (const source of [base64, url, () => key(250), () => base64, async () => key(250)]) {
      expect((await decode(ring("k", { k: source }), bytes)).data).toEqual(secret.data);
    }
  });

  test("is not affected by later changes to the bytes of a key", async () => {
    const bytes = key(1);
    const codec = new DocumentCodec(ring("k", { k: bytes }));
    bytes.fill(0);
    const document = await codec.encode(secret, "");
    expect((await decode(ring("k", { k: key(1) }), document)).data).toEqual(secret.data);
  });
});

describe("a ring of keys", () => {
  test("reads what older keys wrote and writes with the current one", async () => {
    const old = await encode(ring("k1", { k1: key(1) }), secret);
    const rotated = ring("k2", { k1: key(1), k2: key(2) });
    expect((await decode(rotated, old)).data).toEqual(secret.data);
    const next = await encode(rotated, secret);
    expect(headerOf(next)?.codec?.key).toBe("k2");
    expect((await decode(ring("k2", { k2: key(2) }), next)).data).toEqual(secret.data);
  });

  test("asks a function for its key once, when it is first needed", async () => {
    const source = vi.fn(async () => key(1));
    const codec = new DocumentCodec(ring("k1", { k1: source, k2: () => expect.fail("not asked") }));
    expect(source).not.toHaveBeenCalled();
    await Promise.all([codec.encode(secret, ""), codec.encode(secret, "")]);
    await codec.encode(secret, "");
    expect(source).toHaveBeenCalledTimes(1);
  });

  test("asks again after a failure, and reports it", async () => {
    const cause = new Error("KMS is away");
    const source = vi.fn(async () => key(1)).mockRejectedValueOnce(cause);
    const codec = new DocumentCodec(ring("k1", { k1: source }));
    await expect(codec.encode(secret, "")).rejects.toMatchObject({
      code: "SERIALIZATION",
      path: "codec.encrypt.keys.k1",
      cause,
    });
    await codec.encode(secret, "");
    expect(source).toHaveBeenCalledTimes(2);
  });

  test("refuses an invalid key from a function", async () => {
    await expect(encode(ring("k1", { k1: () => new Uint8Array(16) }), secret)).rejects.toThrow(
      configError("codec.encrypt.keys.k1", "must be 32 bytes, or base64 of them; got 16"),
    );
  });
});

describe("what can go wrong has an error of its own", () => {
  const written = encode(ring("k1", { k1: key(1) }), secret);

  test("a key id that is not in the ring", async () => {
    await expect(decode(ring("k2", { k2: key(2) }), await written)).rejects.toThrow(
      configError("codec.encrypt.keys", 'has no key "k1", which file.json is encrypted with'),
    );
  });

  test("an id that only Object.prototype has", async () => {
    const forged = forge(await written, (body) => body.replace('"key":"k1"', '"key":"toString"'));
    await expect(decode(ring("k1", { k1: key(1) }), forged)).rejects.toThrow(
      configError("codec.encrypt.keys", 'has no key "toString"'),
    );
  });

  test("another key of the same id", async () => {
    await expect(decode(ring("k1", { k1: key(2) }), await written)).rejects.toThrow(
      configError("codec.encrypt.keys.k1", "is not the key that file.json was encrypted with"),
    );
  });

  test("no keys at all", async () => {
    await expect(decode({}, await written)).rejects.toThrow(
      configError("codec.encrypt", 'is not set, and file.json is encrypted with the key "k1"'),
    );
  });

  test.each<[string, (body: string) => string]>([
    [
      "a byte of the payload",
      (body) => body.replace(/"content":"(.)/, (_, c) => `"content":"${c === "A" ? "B" : "A"}`),
    ],
    ["the whole payload", (body) => body.replace(/"content":".*"/, '"content":""')],
    ["the run", (body) => body.replace('"runId":"run-1"', '"runId":"run-2"')],
    ["the place", (body) => body.replace('"sequence":1', '"sequence":2')],
    ["the checkpoint's id", (body) => body.replace('"c1"', '"c9"')],
    ["the status", (body) => body.replace('"pending"', '"completed"')],
    ["the nonce", (body) => body.replace(/"nonce":"..../, '"nonce":"AAAA')],
    ["the way it is laid out", (body) => body.replace('"graph":""', '"graph": ""')],
  ])("%s, tampered with under a hash that fits", async (_what, change) => {
    const forged = forge(await written, change);
    const header = headerOf(forged);
    const codec = new DocumentCodec(ring("k1", { k1: key(1) }));
    await expect(
      codec.decode(forged, "file.json", {
        runId: header?.runId ?? "",
        sequence: header?.sequence,
      }),
    ).rejects.toMatchObject({
      code: "CHECKPOINT_CORRUPT",
      message: expect.stringContaining("file.json was tampered with, or moved"),
    });
  });

  test("a document moved to another run or place", async () => {
    const codec = new DocumentCodec(ring("k1", { k1: key(1) }));
    const bytes = await written;
    for (const expected of [{ runId: "run-2" }, { runId, sequence: 2 }]) {
      await expect(codec.decode(bytes, "file.json", expected)).rejects.toMatchObject({
        code: "CHECKPOINT_CORRUPT",
      });
    }
  });

  test("plaintext, unless it is allowed", async () => {
    const options = ring("k1", { k1: key(1) });
    for (const writer of [{}, { compress: { algorithm: "gzip", threshold: 0 } } as const]) {
      const plain = await encode(writer, saved({ text: "a".repeat(2000) }));
      await expect(decode(options, plain)).rejects.toThrow(
        serializationError("file.json", "is not encrypted, and codec.encrypt is on"),
      );
      expect((await decode({ ...options, allowPlaintext: true }, plain)).sequence).toBe(1);
    }
  });
});

describe("a key", () => {
  const text = "a key of thirty-two characters!!";
  const bytes = Buffer.from(text);

  test.each<[string, unknown, string]>([
    ["too short", bytes.subarray(1), "got 31"],
    ["too long, as base64", Buffer.concat([bytes, bytes]).toString("base64"), "got 64"],
    ["as text", text, "got a string that is not base64"],
    ["as hex", bytes.toString("hex"), "got 48"],
    ["as a number", 12345678, "got number"],
    ["missing", undefined, "got undefined"],
  ])("that is %s is refused without being shown", (_what, source, got) => {
    const make = (): unknown => new DocumentCodec(ring("k1", { k1: source as KeySource }));
    expect(make).toThrow(configError("codec.encrypt.keys.k1", got));
    try {
      make();
    } catch (error) {
      expect(inspect(error)).not.toMatch(/thirty|7468697274|dGhpcnR5|12345678/);
    }
  });

  test.each<[unknown, string, string | RegExp]>([
    [{ keys: { k1: key(1) } }, "codec.encrypt.current", "must be a non-empty string"],
    [{ current: "k1" }, "codec.encrypt.keys", "must be an object of keys"],
    [{ current: "k1", keys: key(1) }, "codec.encrypt.keys", "must be an object of keys"],
    [{ current: "k2", keys: { k1: key(1) } }, "codec.encrypt.current", /one of .*keys: "k1"$/],
    [{ current: "toString", keys: {} }, "codec.encrypt.current", /one of .*keys: none$/],
    [{ current: "k1", keys: { "": key(1) } }, "codec.encrypt.keys", "non-empty"],
    [{ current: "k1", keys: { k1: key(1) }, key: "x" }, "codec.encrypt.key", "is not an option"],
  ])("ring %j is refused", (encrypt, option, message) => {
    expect(() => new DocumentCodec({ encrypt } as CodecOptions)).toThrow(
      configError(option, message),
    );
  });

  test.each<[string, unknown, string]>([
    ["the ring", { encrypt: text }, "codec.encrypt"],
    ["the ring, as bytes", { encrypt: bytes }, "codec.encrypt"],
    ["the keys", { encrypt: { current: "k1", keys: text } }, "codec.encrypt.keys"],
    ["the id", { encrypt: { current: text, keys: { k1: bytes } } }, "codec.encrypt.current"],
    ["the options", text, "codec"],
  ])("that stands in place of %s is refused without being shown", (_where, options, option) => {
    const make = (): unknown => new DocumentCodec(options as CodecOptions);
    expect(make).toThrow(configError(option, "must be"));
    expect(make).not.toThrow(/thirty/);
  });

  test("is nowhere in what a store, a graph or a State prints", async () => {
    const root = await mkdtemp(join(tmpdir(), "waymark-keys-"));
    const base64 = bytes.toString("base64");
    const codec = { encrypt: { current: "k1", keys: { k1: bytes, k2: base64, k3: () => bytes } } };
    const store = new FileStore({ root, codec });
    const state = await State.create({ n: 1 }).checkpoint(store);
    const graph = new StateGraph({ checkpoint: { store, interval: 1 } });
    const printed = [store, graph, state]
      .map((one) => inspect(one, { depth: 20, showHidden: true }) + JSON.stringify({ one }))
      .join();
    for (const shown of [text, base64, bytes.toString("hex"), [...bytes].join()]) {
      expect(printed).not.toContain(shown);
    }
    await store.close();
    await rm(root, { recursive: true });
  });

  test("is nowhere in what a codec prints, throws or writes", async () => {
    const codec = new DocumentCodec(ring("k1", { k1: bytes, k2: bytes.toString("base64") }));
    const document = await codec.encode(secret, "");
    const other = new DocumentCodec(ring("k1", { k1: key(7) }));
    const error = await other.decode(document, "f", { runId }).catch((thrown: unknown) => thrown);
    const printed = [codec, error, Buffer.from(document).toString("latin1"), JSON.stringify(codec)]
      .map((value) => inspect(value, { depth: 20, showHidden: true }))
      .join();
    for (const encoding of ["utf8", "base64", "hex", "latin1"] as const) {
      expect(printed).not.toContain(bytes.toString(encoding));
      expect(printed).not.toContain(Buffer.from(key(7)).toString(encoding));
    }
  });
});
