import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { State } from "waymark";
import { DocumentCodec, REDACTED, registerType } from "waymark/codecs";
import { stateData } from "../arbitraries.js";
import { decode, encode, key, runId, saved } from "./documents.js";

class Login {
  constructor(
    readonly user: string,
    readonly token: string,
  ) {}
}
registerType("Login", {
  class: Login,
  toData: ({ user, token }) => ({ user, token }),
  fromData: ({ user, token }) => new Login(user, token),
});

async function through(redact: readonly string[], state: State<object>): Promise<State<object>> {
  const bytes = await encode({ redact }, state);
  return decode<object>({}, bytes);
}

describe("a codec that redacts", () => {
  test("saves a State without its secrets, and says so in the header", async () => {
    const state = saved({ apiKey: "k", user: { token: "t", name: "ada" } });
    const bytes = await encode({ redact: ["data.apiKey", "*.token"] }, state);
    expect(DocumentCodec.header(bytes)?.codec).toEqual({ redacted: true });
    expect((await decode({}, bytes)).data).toEqual({
      apiKey: REDACTED,
      user: { token: REDACTED, name: "ada" },
    });
    expect(state.data.apiKey).toBe("k");
  });

  test("works with compression and encryption", async () => {
    const state = saved({ token: "t", text: "word ".repeat(1000) });
    const options = {
      compress: "gzip",
      encrypt: { current: "k", keys: { k: key(1) } },
      redact: ["*.token"],
    } as const;
    const bytes = await encode(options, state);
    expect(DocumentCodec.header(bytes)?.codec).toMatchObject({ redacted: true, compress: "gzip" });
    expect((await decode(options, bytes)).data).toMatchObject({ token: REDACTED });
  });

  test("writes the very same document when there is nothing to hide", async () => {
    await fc.assert(
      fc.asyncProperty(stateData, async (data) => {
        const state = saved(data);
        expect(await encode({ redact: ["*.no-such-key"] }, state)).toEqual(await encode({}, state));
      }),
      { numRuns: 50 },
    );
  });

  test("sees the values that JSON has no type for as what they are", async () => {
    const sparse: unknown[] = [];
    sparse[3] = { token: "t" };
    const state = saved({
      map: new Map<unknown, unknown>([
        ["token", "t"],
        [{ token: "t" }, 1],
        [7, { token: "t", date: new Date(0) }],
      ]),
      set: new Set([{ token: "t" }]),
      sparse,
      tag: { $date: { token: "t" } },
      error: Object.assign(new TypeError("no", { cause: { token: "t" } }), { token: "t" }),
      login: new Login("ada", "t"),
      bytes: new Uint8Array([1]),
    });
    const { data } = await through(["*.token"], state);
    expect(data).toEqual({
      map: new Map<unknown, unknown>([
        ["token", REDACTED],
        [{ token: REDACTED }, 1],
        [7, { token: REDACTED, date: new Date(0) }],
      ]),
      set: new Set([{ token: REDACTED }]),
      sparse: Object.assign([], { 3: { token: REDACTED } }),
      tag: { $date: { token: REDACTED } },
      error: expect.objectContaining({ token: REDACTED, cause: { token: REDACTED } }),
      login: REDACTED,
      bytes: new Uint8Array([1]),
    });
    expect(Object.keys(Reflect.get(data, "sparse") as object)).toEqual(["3"]);
  });

  test("hides an Error's message in its stack too", async () => {
    const bytes = await encode(
      { redact: ["data.error.message"] },
      saved({ error: new Error("hunter2") }),
    );
    expect(Buffer.from(bytes).toString()).not.toContain("hunter2");
    expect((await decode<{ error: Error }>({}, bytes)).data.error.message).toBe(REDACTED);
  });

  test("can hide everything of the user's, and the State still loads", async () => {
    const { data } = await through(["*"], saved({ a: 1, b: { c: 2 }, $d: new Map() }));
    expect(data).toEqual({ a: REDACTED, b: REDACTED, $d: REDACTED });
    expect((await through(["data"], saved({ a: 1 }))).data).toEqual({ a: REDACTED });
    expect((await through(["data"], saved({ $a: 1 }))).data).toEqual({ $a: REDACTED });
  });

  test("leaves alone what a run needs to go on", async () => {
    const state = saved({ step: 1, runId: "mine", status: 5 });
    const names = ["*.step", "*.runId", "*.status", "*.sequence", "*.waymark", "visits", "graph"];
    const loaded = await through(names, state);
    expect(loaded.toJSON()).toEqual({
      ...state.toJSON(),
      data: { step: REDACTED, runId: REDACTED, status: REDACTED },
    });
  });

  test("hides what a node's failure says", async () => {
    const json = { ...saved({}).toJSON(), error: { name: "E", message: "hunter2", node: "login" } };
    const loaded = await through(["error.*"], State.fromJSON({ ...json, runId }));
    expect(loaded.error).toEqual({ name: "E", message: REDACTED, node: "login" });
  });

  test("still refuses what can't be saved", async () => {
    const cycle: Record<string, unknown> = { token: "t" };
    cycle.self = cycle;
    await expect(through(["*.token"], saved({ cycle }))).rejects.toMatchObject({
      code: "SERIALIZATION",
    });
  });
});
