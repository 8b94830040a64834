import { inspect } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { MemoryStore, State } from "waymark";
import { type FakeClock, useFakeClock } from "waymark/testing";
import { configError } from "../matchers.js";

interface Article {
  topic: string;
  words?: number;
  tags: string[];
}

let clock: FakeClock | undefined;

afterEach(() => {
  clock?.restore();
  clock = undefined;
});

/** A State with all its metadata set, as it would be in the middle of a run. */
async function underWay(): Promise<State<Article>> {
  const json = State.create<Article>({ topic: "cairns", words: 1, tags: ["a"] }).toJSON();
  return State.fromJSON<Article>({
    ...json,
    checkpointId: "cp-3",
    sequence: 3,
    checkpointNode: "review",
    timestamp: "2024-05-06T07:08:09.010Z",
    step: 2,
    status: "failed",
    reason: "failure",
    error: { name: "TypeError", message: "no", node: "publish" },
    parent: { runId: "run-0", checkpointId: "cp-1" },
    graph: { name: "article", version: 4, fingerprint: "0123abcd" },
    visits: { review: 2 },
  });
}

function metadata(state: State<Article>): object {
  const { data: _, ...rest } = state.toJSON();
  return rest;
}

describe("get and has", () => {
  test("distinguish an undefined key from a missing one, and ignore prototypes", () => {
    const state = State.create<Record<string, unknown>>({ there: undefined, topic: "cairns" });
    expect(state.get("topic")).toBe("cairns");
    expect([state.get("there"), state.has("there")]).toEqual([undefined, true]);
    expect([state.get("gone"), state.has("gone")]).toEqual([undefined, false]);
    for (const key of ["toString", "constructor", "__proto__"]) {
      expect([state.get(key), state.has(key)]).toEqual([undefined, false]);
    }
  });
});

describe("every change is a new State of the same run", () => {
  const changes: readonly (readonly [string, (state: State<Article>) => State<Article>, object])[] =
    [
      ["set", (s) => s.set("words", 2), { topic: "cairns", words: 2, tags: ["a"] }],
      ["merge", (s) => s.merge({ words: 2, tags: [] }), { topic: "cairns", words: 2, tags: [] }],
      ["merge of nothing", (s) => s.merge({}), { topic: "cairns", words: 1, tags: ["a"] }],
      [
        "update",
        (s) => s.update((d) => void d.tags.push("b")),
        { topic: "cairns", words: 1, tags: ["a", "b"] },
      ],
      ["clone", (s) => s.clone(), { topic: "cairns", words: 1, tags: ["a"] }],
    ];

  test.each(changes)(
    "%s keeps all metadata and leaves the original alone",
    async (_, change, data) => {
      const state = await underWay();
      const before = JSON.stringify(state);
      const changed = change(state);
      expect(changed).not.toBe(state);
      expect(changed.data).toEqual(data);
      expect(metadata(changed)).toEqual(metadata(state));
      expect(JSON.stringify(state)).toBe(before);
      expect(Object.isFrozen(changed.data)).toBe(true);
    },
  );

  test("set and merge take every key as data, also __proto__", () => {
    const state = State.create<Record<string, unknown>>({});
    const evil = JSON.parse('{"__proto__":{"polluted":true}}');
    for (const changed of [state.set("__proto__", { polluted: true }), state.merge(evil)]) {
      expect(Object.getPrototypeOf(changed.data)).toBe(Object.prototype);
      expect(changed.data).not.toHaveProperty("polluted");
      expect(changed.get("__proto__")).toEqual({ polluted: true });
      expect(State.fromJSON<Record<string, unknown>>(changed.toJSON()).has("__proto__")).toBe(true);
    }
  });

  test("merge of a State takes its data and nothing else", async () => {
    const state = await underWay();
    const merged = state.merge(
      State.create<Article>({ topic: "dolmens", tags: [] }, { runId: "other" }),
    );
    expect(merged.data).toEqual({ topic: "dolmens", words: 1, tags: [] });
    expect(metadata(merged)).toEqual(metadata(state));
  });

  test("a key that is set to undefined is there", () => {
    const state = State.create<{ a?: number | undefined }>({ a: 1 });
    expect([state.set("a", undefined).has("a"), state.merge({ a: undefined }).has("a")]).toEqual([
      true,
      true,
    ]);
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["undefined", undefined],
    ["a text", "words"],
    ["an array", [1]],
    ["a Map", new Map()],
    ["a function", () => ({})],
  ])("merge refuses %s", (_, changes) => {
    expect(() => State.create({}).merge(changes as never)).toThrow(configError("data", "got "));
  });

  test.each<[unknown]>([[Symbol("key")], [5], [undefined], [{}]])(
    "set refuses %o as a key",
    (key) => {
      expect(() => State.create({}).set(key as never, 1 as never)).toThrow(
        configError("key", "must be a string; got "),
      );
    },
  );
});

describe("setCheckpointNode", () => {
  test("sets the node and the time, and nothing else", async () => {
    clock = useFakeClock(Date.parse("2030-01-01T00:00:00.000Z"));
    const state = await underWay();
    const next = state.setCheckpointNode("publish");
    expect(metadata(next)).toEqual({
      ...metadata(state),
      checkpointNode: "publish",
      timestamp: "2030-01-01T00:00:00.000Z",
    });
    expect(next.data).toBe(state.data);
    expect(state.checkpointNode).toBe("review");
  });

  test("increases, even if the clock stands still or is set back", () => {
    clock = useFakeClock(1000);
    const state = State.create({});
    const next = state.setCheckpointNode("a");
    clock.restore();
    clock = useFakeClock(10);
    const last = next.setCheckpointNode("b");
    expect([state, next, last].map(({ timestamp }) => Date.parse(timestamp))).toEqual([
      1000, 1001, 1002,
    ]);
  });

  test("refuses what is not a name", () => {
    expect(() => State.create({}).setCheckpointNode(5 as never)).toThrow(
      configError("node", "got 5"),
    );
  });
});

describe("checkpoint", () => {
  test("is the store's save: what comes back carries its record", async () => {
    const store = new MemoryStore();
    const state = State.create({ topic: "cairns" });
    const saved = await state.checkpoint(store);
    expect([state.checkpointId, state.sequence]).toEqual(["", 0]);
    expect(saved.checkpointId).not.toBe("");
    expect(saved.sequence).toBe(1);
    expect((await store.load(state.runId)).checkpointId).toBe(saved.checkpointId);
    expect((await saved.set("topic", "x").checkpoint(store)).sequence).toBe(2);
  });

  test.each<[unknown]>([[undefined], [null], [{}], ["memory"]])(
    "rejects %j as a store",
    async (store) => {
      await expect(State.create({}).checkpoint(store as never)).rejects.toEqual(
        configError("store", "must be a CheckpointStore; got "),
      );
    },
  );
});

test("savedAs takes the record of a store, or of a State that was saved", () => {
  const state = State.create({}).savedAs({ checkpointId: "cp-1", sequence: 1, bytes: 12 });
  expect(state).toMatchObject({ checkpointId: "cp-1", sequence: 1, bytes: 12 });
  expect(State.create({}).savedAs(state)).toMatchObject({ checkpointId: "cp-1", sequence: 1 });
  const savedAt = "2030-01-02T03:04:05.678Z";
  expect(state.savedAs({ checkpointId: "cp-2", sequence: 2, savedAt }).savedAt).toBe(savedAt);
});

test("console.log shows the run id and the data", () => {
  const state = State.create({ topic: "cairns" }, { runId: "run-1" });
  expect(inspect(state)).toContain("runId: 'run-1'");
  expect(inspect(state)).toContain("data: { topic: 'cairns' }");
});
