import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Ledger, State } from "waymark";
import { REDACTED, type Redaction, registerType } from "waymark/codecs";
import { RecordCodec } from "../../src/checkpoint/records/codec.js";
import { headerOf } from "../../src/checkpoint/records/document.js";
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

async function through(redact: Redaction, state: State<object>): Promise<State<object>> {
  const bytes = await encode({ redact }, state);
  return decode<object>({}, bytes);
}

describe("a codec that redacts", () => {
  test("saves a State without its secrets, and says so in the header", async () => {
    const state = saved({ apiKey: "k", user: { token: "t", name: "ada" } });
    const bytes = await encode({ redact: ["data.apiKey", "*.token"] }, state);
    expect(headerOf(bytes)?.codec).toEqual({ redacted: true });
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
    expect(headerOf(bytes)?.codec).toMatchObject({ redacted: true, compress: "gzip" });
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

  test("handles values that JSON has no type for", async () => {
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

  test("does not redact what a run needs to continue", async () => {
    const state = saved({ step: 1, runId: "mine", status: 5 });
    const names = ["*.step", "*.runId", "*.status", "*.sequence", "*.waymark", "visits", "graph"];
    const loaded = await through(names, state);
    expect(loaded.toJSON()).toEqual({
      ...state.toJSON(),
      data: { step: REDACTED, runId: REDACTED, status: REDACTED },
    });
  });

  test("hides the message of a node's error", async () => {
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

  describe("with an expression", () => {
    const secret = "sk-live123";
    const at = { node: "ask", step: 0, timestamp: "2026-01-01T00:00:00.000Z" };
    const ledger = Ledger.empty
      .addDecision({ ...at, type: secret, description: secret, rationale: `use ${secret}` })
      .setAgent("a", { ...at, status: secret, state: { key: secret }, outputRef: secret })
      .setOutput("o", { ...at, ref: secret });
    const full = State.fromJSON({
      ...State.create(
        {
          text: `the key is ${secret}.`,
          list: [secret, { deep: new Map([["k", secret]]) }],
          url: new URL(`https://example.com/?key=${secret}`),
          expression: new RegExp(secret),
          error: new Error(`no ${secret}`),
          login: new Login("ada", secret),
          count: 5,
        },
        { runId, metadata: { customer: "acme", key: secret, tries: 3 } },
      ).toJSON(),
      sequence: 1,
      checkpointId: "c1",
      savedAt: at.timestamp,
      error: { name: "Error", message: `no ${secret}`, node: "ask", stack: `Error: no ${secret}` },
      ledger: ledger.toJSON(),
      pauses: [{ name: "", reason: `send ${secret}?`, ask: { key: secret } }],
      begun: {
        node: "ask",
        startedAt: at.timestamp,
        durationMs: 1,
        items: [[secret, at.timestamp, 1]],
      },
    });

    test("redacts it in every text of the user's, in the header too", async () => {
      const bytes = await encode({ redact: [/sk-\w+/] }, full);
      expect(Buffer.from(bytes).toString()).not.toContain(secret);
      const loaded = await decode<Record<string, unknown>>({}, bytes);
      expect(loaded.data).toMatchObject({
        text: `the key is ${REDACTED}.`,
        list: [REDACTED, { deep: new Map([["k", REDACTED]]) }],
        url: REDACTED,
        expression: REDACTED,
        error: expect.objectContaining({ message: `no ${REDACTED}` }),
        login: REDACTED,
        count: 5,
      });
      expect(loaded.metadata).toEqual({ customer: "acme", key: REDACTED, tries: 3 });
      expect(loaded.error).toEqual({ name: "Error", message: `no ${REDACTED}`, node: "ask" });
      expect(headerOf(bytes)).toMatchObject({
        metadata: loaded.metadata,
        codec: { redacted: true },
      });
    });

    test("only in the stack, leaves the message", async () => {
      const json = full.toJSON();
      const error = { name: "E", message: "no", node: "ask", stack: `E: no\n at ${secret}.js` };
      const loaded = await through([/sk-\w+/], State.fromJSON({ ...json, error }));
      expect(loaded.error).toEqual({ ...error, stack: `E: no\n at ${REDACTED}.js` });
    });

    test("beside paths, also of metadata", async () => {
      const loaded = await through(["metadata.tries", /sk-\w+/], full);
      expect(loaded.metadata).toEqual({ customer: "acme", key: REDACTED, tries: REDACTED });
    });

    test("a text that was redacted once is so in every later checkpoint of a delta store", async () => {
      const codec = new RecordCodec({ redact: [/sk-\w+/] }, 100);
      const big = { keys: Array.from({ length: 50 }, (_, index) => `sk-${index}`), n: 0 };
      const placeOf = ({ checkpointId, sequence, savedAt }: State<object>, previous: string) => ({
        ...{ checkpointId, sequence, savedAt, previous, parentId: previous },
        ...{ keep: 5, keepPerPhase: undefined },
      });
      const first = saved(big);
      const one = await codec.encode(first, placeOf(first, ""), undefined);
      const second = first.set("n", 1).savedAs({ checkpointId: "c2", sequence: 2 });
      const two = await codec.encode(second, placeOf(second, "c1"), one.base);
      expect(two.record.content).not.toContain("sk-");
      expect(two.record.content.length).toBeLessThan(100);
    });
  });
});

describe("wherever a secret is", () => {
  const secret = "sk-live123";
  const now = "2026-01-01T00:00:00.000Z";
  const at = { node: "ask", step: 0, timestamp: now };
  const counters = { counters: { [secret]: 2 }, peaks: { [secret]: 3 } };
  const ledger = Ledger.empty
    .addUsage("ask", counters)
    .addDecision({
      ...{ ...at, type: secret, description: secret, rationale: secret, agent: secret },
      alternatives: [secret],
    })
    .setAgent(secret, {
      ...{ ...at, type: secret, status: secret, blockers: [secret], lastDecision: secret },
      ...{ outputRef: secret, state: { [secret]: secret } },
    })
    .setOutput(secret, { ...at, ref: new Map([[secret, secret]]) });
  const items = [[secret, now, 1]];
  /** One text of the user's in every place. */
  const everywhere = {
    ...State.create(
      {
        [secret]: secret,
        map: new Map<unknown, unknown>([
          [secret, 1],
          [`${secret}4`, 2],
          [{ [secret]: secret }, [secret]],
        ]),
        set: new Set([secret]),
        error: Object.assign(new Error(secret), { name: secret }),
        deep: [{ [secret]: { [`$${secret}`]: 1 } }],
        sparse: Object.assign([], { 3: secret }),
        url: new URL(`https://example.com/${secret}`),
        expression: new RegExp(secret),
      },
      { runId, metadata: { [secret]: secret } },
    ).toJSON(),
    ...{ sequence: 1, checkpointId: "c1", savedAt: now, reason: secret, inherited: [secret] },
    error: { name: secret, message: secret, node: "ask", stack: secret },
    ledger: ledger.toJSON(),
    pauses: [
      {
        ...{ name: "", reason: secret, ask: { [secret]: secret }, refused: secret },
        schema: { title: secret, properties: { [secret]: { default: secret } } },
        onTimeout: { [secret]: secret },
      },
    ],
    answers: [{ name: "", value: { [secret]: secret } }],
    unfinished: { node: "ask", results: { charged: { [secret]: [secret] } }, count: 1 },
    begun: { node: "ask", startedAt: now, durationMs: 1, usage: counters, items },
    steps: [
      {
        ...{ node: "ask", step: 1, phase: "", startedAt: now, completedAt: now, durationMs: 1 },
        ...{ attempts: 1, usage: counters, items },
      },
    ],
  };

  test("no byte of a record holds it", async () => {
    const bytes = await encode({ redact: [/sk-\w+/] }, State.fromJSON(everywhere as never));
    expect(Buffer.from(bytes).toString()).not.toContain("sk-");
    const loaded = await decode<Record<string, unknown>>({}, bytes);
    expect(loaded.data).toMatchObject({
      [REDACTED]: REDACTED,
      map: new Map<unknown, unknown>([
        [REDACTED, 1],
        [`${REDACTED} 2`, 2],
        [{ [REDACTED]: REDACTED }, [REDACTED]],
      ]),
      deep: [{ [REDACTED]: { [`$${REDACTED}`]: 1 } }],
    });
    expect(loaded.metadata).toEqual({ [REDACTED]: REDACTED });
    expect(loaded.ledger.usage).toMatchObject({ counters: { [REDACTED]: 2 } });
    expect(Object.keys(loaded.ledger.agents)).toEqual([REDACTED]);
    expect(loaded.error).toEqual({ name: REDACTED, message: REDACTED, node: "ask" });
  });

  test("keys that become equal stay distinct", async () => {
    const state = saved({ "sk-1": 1, "sk-2": 2, [REDACTED]: 3, other: 4 });
    const { data } = await through([/sk-\w+/], state);
    expect(Object.entries(data)).toEqual([
      [`${REDACTED} 2`, 1],
      [`${REDACTED} 3`, 2],
      [REDACTED, 3],
      ["other", 4],
    ]);
  });

  test("the keys of once, names of pauses and tasks stay, by which a resume finds them", async () => {
    const loaded = await through(
      [/sk-\w+/],
      State.fromJSON({
        ...everywhere,
        pauses: [{ name: "sk-pause", reason: "" }],
        answers: [{ name: "sk-pause", value: 1 }],
        tasks: ["sk-task"],
        unfinished: { node: "sk-node", results: { "sk-once": 1 }, count: 1 },
      } as never),
    );
    expect(loaded.toJSON()).toMatchObject({
      pauses: [{ name: "sk-pause" }],
      answers: [{ name: "sk-pause" }],
      tasks: ["sk-task"],
      unfinished: { node: "sk-node", results: { "sk-once": 1 } },
    });
  });
});
