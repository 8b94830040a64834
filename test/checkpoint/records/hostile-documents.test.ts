import { describe, expect, test } from "vitest";
import { isWaymarkError } from "waymark";
import { decode, encode, forge, saved } from "../../codecs/documents.js";
import { serializationError } from "../../matchers.js";

/** A document whose hash fits and whose data is this JSON. */
async function holding(json: string): Promise<Uint8Array> {
  return forge(await encode({}, saved({ here: 1 })), (body) => body.replace('{"here":1}', json));
}

describe("a malicious document", () => {
  test("can't pollute a prototype", async () => {
    const json = '{"__proto__":{"bad":1},"a":{"constructor":{"prototype":{"bad":1}}}}';
    const { data } = await decode({}, await holding(json));
    expect(Object.keys(data)).toEqual(["__proto__", "a"]);
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
    expect(data.bad).toBeUndefined();
    expect(Reflect.get({}, "bad")).toBeUndefined();
  });

  test.each([
    '{"$type":["Object",{}]}',
    '{"$type":["constructor",{}]}',
    '{"$type":["__proto__",{}]}',
    '{"$type":["Function","return process"]}',
    '{"$bytes":["Function","AAAA"]}',
    '{"$bytes":["toString","AAAA"]}',
    '{"$error":["Function","x","x",null,{}]}',
    '{"$constructor":1}',
  ])("can't reach a class or a function by %s", async (tag) => {
    await expect(decode({}, await holding(`{"a":[${tag}]}`))).rejects.toThrow(
      serializationError("data.a[0]"),
    );
  });

  test.each([
    ["arrays", "[", "]", ""],
    ["objects", '{"a":', "}", "1"],
    ["maps", '{"$map":[[1,', "]]}", "1"],
    ["sets", '{"$set":[', "]}", ""],
    ["wrapped objects", '{"$object":{"a":', "}}", "1"],
    ["types", '{"$type":["none",', "]}", "1"],
    ["errors", '{"$error":["Error","","",null,{"cause":', "}]}", "1"],
  ])("that nests %s 100,000 deep is refused", async (_what, open, close, middle) => {
    const json = `{"a":${open.repeat(100_000)}${middle}${close.repeat(100_000)}}`;
    await expect(decode({}, await holding(json))).rejects.toThrow(
      serializationError(expect.stringMatching(/^data\.a/) as unknown as string, "levels deep"),
    );
  });

  test.each([
    '{"a":{"$sparse":[4294967295,[],[]]}}',
    '{"a":{"$sparse":[4294967295,[4294967294],[1]]}}',
    '{"a":{"$sparse":[4294967296,[],[]]}}',
    '{"a":{"$sparse":[1e300,[],[]]}}',
    '{"a":{"$bytes":["Float64Array","AAAA"]}}',
    '{"a":{"$bytes":["Uint8Array",1e9]}}',
    '{"a":{"$regexp":["(","g",0]}}',
  ])("that claims a huge length, or what can't be, is refused: %s", async (json) => {
    await expect(decode({}, await holding(json))).rejects.toThrow(
      serializationError("data.a", "holds a malformed"),
    );
  });

  test("with thousands of long sparse arrays takes no memory for the holes", async () => {
    const one = '{"$sparse":[16777216,[0,8388608],[[],1]]}';
    const json = `{"a":[${Array.from({ length: 2000 }, () => one).join()}]}`;
    const before = process.memoryUsage().heapUsed;
    const state = await decode<{ a: unknown[][]; b?: number }>({}, await holding(json));
    const next = state.update((draft) => {
      draft.b = 1;
    });
    expect(next.data.a[1999]).toHaveLength(2 ** 24);
    expect(JSON.stringify(next.toJSON().data)).toBe(`${json.slice(0, -1)},"b":1}`);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("with a header that nests 100,000 deep is refused", async () => {
    const deep = `"graph":${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const forged = forge(await encode({}, saved({})), (body) => body.replace('"graph":""', deep));
    await expect(decode({}, forged)).rejects.toMatchObject({ code: "CHECKPOINT_CORRUPT" });
  });

  test("whose state lacks a field, or has one of another type, is refused with a typed error", async () => {
    const bytes = await encode({}, saved({ here: 1 }));
    const state = JSON.parse(Buffer.from(bytes).toString()).content as Record<string, unknown>;
    for (const field of Object.keys(state)) {
      for (const value of [undefined, null, -1, 1.5, [], {}, "\u0000", { $date: "x" }]) {
        const forged = forge(bytes, (body) => {
          const at = body.indexOf('"content":');
          return `${body.slice(0, at)}"content":${JSON.stringify({ ...state, [field]: value })}}\n`;
        });
        const error = await decode({}, forged).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        if (error !== undefined && !isWaymarkError(error))
          expect.fail(`${field}: ${String(error)}`);
      }
    }
  });
});
