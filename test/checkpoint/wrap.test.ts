import { describe, expect, test } from "vitest";
import { type CheckpointStore, MemoryStore, State } from "waymark";
import { mirror } from "waymark/stores/mirror";
import { studio } from "waymark/studio";
import { crashAt, testCheckpointStore } from "waymark/testing";
import {
  audited,
  exportOf,
  historyOf,
  listRuns,
  verifyOf,
} from "../../src/checkpoint/any-store.js";
import { isCheckpointStore, opened, storeMethods, wrap } from "../../src/checkpoint/store.js";
import { Redaction } from "../../src/report/redaction.js";
import { deferredStore } from "../../src/stores/registry.js";
import { inspecting } from "../../src/studio/context.js";
import { fenced } from "../../src/worker/active-run.js";
import { bare } from "../graphs.js";
import { collect } from "../stores/plain.js";

type Method = keyof CheckpointStore;

const all = Object.keys(storeMethods).filter((name): name is Method => name !== "open");
const needed = all.filter((name) => storeMethods[name] === "required");
const optional = all.filter((name) => storeMethods[name] !== "required");

/** Every set of optional methods. */
const subsets = Array.from({ length: 2 ** optional.length }, (_, set) =>
  optional.filter((_, at) => (set >> at) % 2 === 1),
);

/** A store whose methods return who was called with what. */
class Probe {
  readonly seen: { readonly method: string; readonly args: unknown[]; readonly store: unknown }[];

  constructor(methods: readonly string[]) {
    this.seen = [];
    for (const method of methods) {
      const call = function (this: unknown, ...args: unknown[]): unknown {
        seen.push({ method, args, store: this });
        return storeMethods[method as Method] === "optional stream" ? items() : Promise.resolve([]);
      };
      Reflect.set(this, method, call);
    }
    const { seen } = this;
  }
}

async function* items(): AsyncGenerator<unknown> {
  yield "item";
}

const probe = (extra: readonly string[]): CheckpointStore & Probe =>
  new Probe([...needed, ...extra]) as CheckpointStore & Probe;

const wrappers: Readonly<Record<string, (store: CheckpointStore) => CheckpointStore>> = {
  wrapped: (store) => wrap(store, {}),
  "wrapped twice": (store) => wrap(wrap(store, {}), {}),
  audited: (store) => audited(store, () => {}, { actor: "a", purpose: "p" }),
  "fenced for a worker": (store) => fenced(store, new Map()),
  redacted: (store) => new Redaction(["secret"]).store(store),
  "of a studio": (store) => inspecting(store),
};

/** The methods that a store has. */
const methodsOf = (store: CheckpointStore): string[] =>
  all.filter((name) => store[name] !== undefined);

describe.each(Object.entries(wrappers))("a store that is %s", (_, wrapper) => {
  test("has the methods of the store behind it, whichever these are", () => {
    for (const extra of subsets) {
      const store = probe(extra);
      expect(methodsOf(wrapper(store))).toEqual(methodsOf(store));
    }
  });

  test("has them also if the store is opened on first use", async () => {
    for (const extra of subsets.filter((_, at) => at % 97 === 0)) {
      const store = probe(extra);
      const behind = await opened(wrapper(deferredStore("late", async () => store)));
      expect(methodsOf(behind)).toEqual(methodsOf(store));
    }
  });
});

test("a mirror has the methods of its primary, and can always be closed", async () => {
  for (const extra of subsets.filter((_, at) => at % 31 === 0)) {
    const store = probe(extra);
    const has = all.filter((name) => name === "close" || store[name] !== undefined);
    expect(methodsOf(mirror(store, [new MemoryStore()]))).toEqual(has);
    const late = mirror(
      deferredStore("late", async () => store),
      [new MemoryStore()],
    );
    expect(methodsOf(await opened(late))).toEqual(has);
  }
});

test("a store that simulates a crash has the methods of the one behind it, opened or not", async () => {
  const store = probe(["history"]);
  expect(methodsOf(crashAt(store, { save: 1 }))).toEqual(methodsOf(store));
  const late = crashAt(
    deferredStore("late", async () => store),
    { save: 1 },
  );
  const behind = await opened<CheckpointStore>(late);
  await expect(behind.save(State.create({}))).rejects.toThrow("the process died at save 1");
  expect(store.seen).toEqual([]);
});

describe("every method is called on the store behind, with all arguments", () => {
  test.each(all)("%s", async (method) => {
    const store = probe(optional);
    const late = deferredStore("late", async () => store);
    const args = [{ runId: "r" }, { limit: 1 }, "third"];
    for (const wrapper of [wrap(store, {}), late, wrap(late, {}), await opened(wrap(late, {}))]) {
      const call: unknown = wrapper[method];
      if (typeof call !== "function") throw new Error(`has no ${method}`);
      await late.list();
      store.seen.length = 0;
      // As a caller does that has taken the method off the store.
      const answer: unknown = call(...args);
      if (storeMethods[method] === "optional stream") {
        expect(await (answer as AsyncGenerator).next()).toEqual({ value: "item", done: false });
      } else {
        expect(await answer).toEqual([]);
      }
      // An open store closes what it holds; its wrapper adds nothing.
      expect(store.seen).toEqual([
        { method, args: method === "close" ? store.seen[0]?.args : args, store },
      ]);
    }
  });
});

describe("a store with the four methods only, behind an async factory", () => {
  const late = (): CheckpointStore => deferredStore("late", async () => bare(new MemoryStore()));
  testCheckpointStore({ name: "late", create: late, test });

  test("is listed, read and verified as far as it can be", async () => {
    const store = late();
    const { runId, checkpointId } = await store.save(State.create({ n: 1 }, { runId: "r" }));
    expect(await listRuns(store)).toMatchObject([{ runId }]);
    expect(await historyOf(store, runId)).toMatchObject([{ checkpointId }]);
    expect(await collect(exportOf(store, runId))).toMatchObject([{ state: { checkpointId } }]);
    expect(await collect(verifyOf(store))).toEqual([]);
    const handler = studio({ store, auth: () => true });
    const ask = async (path: string) =>
      (await handler(new Request(`http://localhost/api${path}`))).json();
    expect(await ask("/runs")).toMatchObject({ runs: [{ runId, live: null }] });
    expect(await ask("/runs/r/history")).toMatchObject({ error: { code: "NO_HISTORY" } });
    await handler.close();
  });
});

test("an override is used if the store has the method, and only then", async () => {
  const shout = { list: (list: () => Promise<string[]>) => async () => [...(await list()), "!"] };
  const prune = (prune: unknown) => async () => [typeof prune];
  const store = new MemoryStore();
  await store.save(State.create({}, { runId: "r" }));
  const wrapped = wrap<CheckpointStore>(store, { ...shout, prune });
  expect(await wrapped.list()).toEqual(["r", "!"]);
  expect(await wrapped.prune?.({})).toEqual(["function"]);
  expect(wrap(bare(store), { prune }).prune).toBeUndefined();
  const late = wrap(
    deferredStore("late", () => bare(store)),
    { ...shout, prune },
  );
  expect(await late.list()).toEqual(["r", "!"]);
  expect((await opened<CheckpointStore>(late)).prune).toBeUndefined();
  expect(await (await opened(late)).list()).toEqual(["r", "!"]);
});

test("a method that is replaced later is the one that is called", async () => {
  const store = new MemoryStore();
  const wrapped = wrap(store, {});
  store.list = async () => ["replaced"];
  expect(await wrapped.list()).toEqual(["replaced"]);
});

test("what has the required methods is a store", () => {
  const without = (name: string) => new Probe(needed.filter((method) => method !== name));
  expect(isCheckpointStore(new Probe(needed))).toBe(true);
  for (const name of needed) expect(isCheckpointStore(without(name))).toBe(false);
});
