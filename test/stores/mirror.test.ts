import { join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { afterAll, describe, expect, test } from "vitest";
import {
  CheckpointCorruptionError,
  type CheckpointStore,
  END,
  MemoryStore,
  State,
  StateGraph,
} from "waymark";
import { FileStore } from "waymark/stores/file";
import { type MirrorOptions, mirror } from "waymark/stores/mirror";
import { PostgresStore } from "waymark/stores/postgres";
import { SqliteStore } from "waymark/stores/sqlite";
import { testCheckpointStore } from "waymark/testing";
import { deferredStore } from "../../src/stores/registry.js";
import { rejection } from "../graphs.js";
import { newFolder } from "./folders.js";
import { only } from "./plain.js";
import { newSchema } from "./postgres/server.js";

const pglite = new PGlite();
afterAll(() => pglite.close());

interface Count {
  readonly n: number;
}

const sqlite = (): SqliteStore =>
  new SqliteStore({ path: join(newFolder(), "waymark.db"), durability: "os" });
const file = (): FileStore => new FileStore({ root: newFolder(), durability: "os" });
const postgres = (): PostgresStore => new PostgresStore({ client: pglite, schema: newSchema() });

/** The ids and sequences of a run's checkpoints, newest first. */
async function idsIn(store: CheckpointStore, runId: string): Promise<string[]> {
  const history = (await store.history?.(runId)) ?? [];
  return history.map(({ sequence, checkpointId }) => `${sequence} ${checkpointId}`);
}

/** A run of so many nodes, each of which is saved. */
function counting(store: CheckpointStore, last: number) {
  return new StateGraph<Count>({
    name: "count",
    checkpoint: { store, interval: 1, preserve: true },
  })
    .addNode("add", (state) => ({ n: state.data.n + 1 }))
    .addEdge("add", "add", (state) => state.data.n < last)
    .addEdge("add", END)
    .setEntryPoint("add");
}

/** A store that can be taken away, and what it then fails with. */
function awayable<T extends SqliteStore>(store: T): { store: T; isAway: boolean } {
  const place = { store, isAway: false };
  for (const method of ["append", "import", "history", "delete"] as const) {
    const real = Reflect.get(store, method) as (...args: unknown[]) => Promise<unknown>;
    Reflect.set(store, method, async (...args: unknown[]) => {
      if (place.isAway) throw new Error("the copy is away");
      return real.apply(store, args);
    });
  }
  return place;
}

describe("a mirror passes its primary's suite", () => {
  let root = "";
  const open = (): CheckpointStore => {
    const primary = new SqliteStore({ path: join(root, "primary.db"), durability: "os" });
    return mirror(primary, [new FileStore({ root: join(root, "copy"), durability: "os" })], {
      mode: "sync",
    });
  };
  testCheckpointStore({
    name: "mirror of SQLite in files",
    create: () => {
      root = newFolder();
      return open();
    },
    reopen: open,
    test,
  });
});

describe.each([
  ["SQLite to Postgres", sqlite, postgres],
  ["SQLite to files", sqlite, file],
  ["Postgres to SQLite", postgres, sqlite],
  ["memory to SQLite", () => new MemoryStore(), sqlite],
  ["SQLite to memory", sqlite, () => new MemoryStore()],
  ["memory to memory", () => new MemoryStore(), () => new MemoryStore()],
] as const)("a mirror of %s", (_, primary, replica) => {
  test("copies a run with its ids, sequences and retention", async () => {
    const [first, copy] = [primary(), replica()];
    const store = mirror(first, [copy], { mode: "sync" });
    const { runId } = await counting(store, 12).execute(State.create<Count>({ n: 0 }));
    expect(await idsIn(copy, runId)).toEqual(await idsIn(first, runId));
    expect((await copy.load<Count>(runId)).toJSON()).toEqual(
      (await first.load<Count>(runId)).toJSON(),
    );
    expect(store.lag()).toEqual([{ replica: 0, saves: 0, runs: [], ms: 0, error: undefined }]);
    await store.delete(runId);
    expect(await copy.list()).toEqual([]);
    await store.close();
  });

  test("continues runs in the copy once it is promoted", async () => {
    const [first, copy] = [primary(), replica()];
    const store = mirror(first, [copy]);
    const paused = await State.create<Count>({ n: 0 }).checkpoint(store);
    const saved = await paused.set("n", 1).checkpoint(store);
    const promotion = await store.promote();
    expect(promotion.runs).toEqual([{ runId: saved.runId, sequence: 2, missing: 0 }]);
    const continued = await promotion.store.load<Count>(saved.runId);
    expect(continued.data.n).toBe(1);
    expect((await continued.set("n", 2).checkpoint(promotion.store)).sequence).toBe(3);
    await store.close();
  });
});

function start(options: MirrorOptions = {}) {
  const failures: unknown[] = [];
  const primary = sqlite();
  const copy = awayable(sqlite());
  const store = mirror(primary, [copy.store], {
    onError: (error, failed) => failures.push({ error, ...failed }),
    ...options,
  });
  return { failures, primary, copy, store };
}

test("an unreachable copy fails no save, shows its lag, and catches up", async () => {
  const { failures, primary, copy, store } = start({ mode: "sync" });
  const state = await State.create<Count>({ n: 0 }).checkpoint(store);
  copy.isAway = true;
  const next = await state.set("n", 1).checkpoint(store);
  await next.set("n", 2).checkpoint(store);
  const { runId } = state;
  expect(failures).toMatchObject([{ runId, replica: 0, error: { message: "the copy is away" } }]);
  expect(store.lag()).toMatchObject([{ saves: 2, runs: [runId], error: "the copy is away" }]);
  copy.isAway = false;
  expect(await store.catchUp()).toMatchObject([{ saves: 0, runs: [], error: undefined }]);
  expect(await idsIn(copy.store, runId)).toEqual(await idsIn(primary, runId));
  await store.close();
});

test("a run deleted while the copy was unreachable is deleted there", async () => {
  const { copy, store } = start({ mode: "sync" });
  const { runId } = await State.create<Count>({ n: 0 }).checkpoint(store);
  copy.isAway = true;
  await store.delete(runId);
  copy.isAway = false;
  await store.catchUp();
  expect(await copy.store.list()).toEqual([]);
  await store.close();
});

test("a copy left behind by another process catches up, even beyond what the primary keeps", async () => {
  const [primary, copy] = [sqlite(), sqlite()];
  const old = mirror(primary, [copy], { mode: "sync" });
  let state = await State.create<Count>({ n: 0 }).checkpoint(old);
  // Without the mirror, as if that had died before it copied.
  state = await state.set("n", 1).checkpoint(primary);
  const store = mirror(primary, [copy], { mode: "sync" });
  state = await state.set("n", 2).checkpoint(store);
  expect(await idsIn(copy, state.runId)).toEqual(await idsIn(primary, state.runId));
  // Until none of what the copy has is kept: steps, of which five are.
  const graph = counting(primary, 20);
  const { runId } = await graph.execute(State.create<Count>({ n: 0 }, { runId: "long" }));
  await store.catchUp();
  expect(await idsIn(copy, runId)).toEqual(await idsIn(primary, runId));
  expect(await copy.list()).toHaveLength(2);
  await store.close();
});

test("a copy older than everything the primary keeps is replaced", async () => {
  const [primary, copy] = [sqlite(), sqlite()];
  const first = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(primary);
  await copy.import(primary.export("run"));
  let state = first;
  for (let n = 1; n < 20; n++) {
    const { step, ...json } = state.set("n", n).toJSON();
    state = await primary.save(State.fromJSON<Count>({ ...json, step: step + 1 }), { keep: 2 });
  }
  expect((await primary.history("run")).at(-1)?.sequence).toBeGreaterThan(1);
  const store = mirror(primary, [copy], { mode: "sync" });
  await store.catchUp();
  expect(await idsIn(copy, "run")).toEqual(await idsIn(primary, "run"));
  await store.close();
});

test("a run continued in the copy is not overwritten", async () => {
  const { failures, copy, store } = start({ mode: "sync" });
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  const there = await copy.store.load<Count>("run");
  const own = await there.set("n", 100).checkpoint(copy.store);
  await state.set("n", 1).checkpoint(store);
  expect(failures.length).toBeGreaterThan(0);
  expect(store.lag()[0]?.error).toContain("was continued in a replica");
  expect((await copy.store.load<Count>("run")).checkpointId).toBe(own.checkpointId);
  await store.close();
});

test("promote reports how far a copy lags behind a lost primary", async () => {
  const { primary, copy, store } = start({ mode: "sync" });
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  copy.isAway = true;
  const next = await state.set("n", 1).checkpoint(store);
  await next.set("n", 2).checkpoint(store);
  Reflect.set(primary, "list", () => Promise.reject(new Error("gone")));
  Reflect.set(primary, "history", () => Promise.reject(new Error("gone")));
  copy.isAway = false;
  const { runs } = await store.promote();
  expect(runs).toEqual([{ runId: "run", sequence: 1, missing: 2 }]);
});

test("a damaged copy is not promoted", async () => {
  const copy = sqlite();
  const store = mirror(sqlite(), [copy], { mode: "sync" });
  await State.create<Count>({ n: 0 }).checkpoint(store);
  Reflect.set(copy, "verify", async function* () {
    yield { runId: "r", sequence: 1, problem: "corrupt", expected: "a", actual: "b" };
  });
  const error = await rejection(store.promote(), CheckpointCorruptionError);
  expect(error.message).toContain("replica 0 can't be promoted");
  await expect(store.promote(7)).rejects.toMatchObject({ code: "CONFIG" });
  await store.close();
});

test("a copy given by address gets only what changed, as its store would", async () => {
  const copy = sqlite();
  const store = mirror(sqlite(), [deferredStore("copy", () => copy)], { mode: "sync" });
  const { runId } = await counting(store, 4).execute(State.create<Count>({ n: 0 }));
  expect(await idsIn(copy, runId)).toHaveLength(5);
  expect((await store.find((await copy.load(runId)).checkpointId)) === runId).toBe(true);
  await store.close();
});

test("a copy that is not a store, or can't import, is refused", () => {
  const make = (primary: unknown, replicas: unknown, options?: unknown) => () =>
    mirror(primary as never, replicas as never, options as never);
  const primary = new MemoryStore();
  expect(make({}, [sqlite()])).toThrow("primary must be a CheckpointStore");
  expect(make(primary, [])).toThrow("replicas must be an array");
  expect(make(primary, [only(sqlite(), "save", "load", "delete", "list")])).toThrow(
    "replicas[0] must be another",
  );
  expect(make(primary, [primary])).toThrow("replicas[0] must be another");
  expect(make(primary, [sqlite()], { mode: "fast" })).toThrow("options.mode must be");
});
