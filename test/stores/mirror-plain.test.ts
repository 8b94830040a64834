import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  type CheckpointStore,
  getCheckpointStore,
  MemoryStore,
  registerCheckpointStore,
  State,
} from "waymark";
import { mirror } from "waymark/stores/mirror";
import { SqliteStore } from "waymark/stores/sqlite";
import { exportOf, historyOf, listRuns, verifyOf } from "../../src/checkpoint/any-store.js";
import { opened } from "../../src/checkpoint/store.js";
import { linear } from "../graphs.js";
import { newFolder } from "./folders.js";
import { collect, only } from "./plain.js";

interface Count {
  readonly n: number;
}

const sqlite = (): SqliteStore =>
  new SqliteStore({ path: join(newFolder(), "waymark.db"), durability: "os" });
const saving = ["save", "load", "delete", "list"] as const;
const moving = [...saving, "history", "import"] as const;

const checkpointIds = async (store: CheckpointStore, runId: string): Promise<string[]> =>
  ((await store.history?.(runId)) ?? []).map(({ checkpointId }) => checkpointId);

test("a mirror of a primary with only the four methods copies it, and has no more methods", async () => {
  const primary = only(new MemoryStore(), ...saving);
  const copy = sqlite();
  const store = mirror(primary, [copy], { mode: "sync" });
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  const { checkpointId } = await state.set("n", 1).checkpoint(store);
  expect((await copy.load<Count>("run")).checkpointId).toBe(checkpointId);
  expect((await store.load<Count>("run")).data.n).toBe(1);
  expect(await store.list()).toEqual(["run"]);
  const methods = [...saving, "lag", "catchUp", "promote", "close"];
  expect(Object.keys(store).sort()).toEqual(methods.sort());
  expect(await historyOf(store, "run")).toMatchObject([{ checkpointId, sequence: 2 }]);
  expect(await historyOf(store, "none")).toEqual([]);
  expect(await listRuns(store, { status: "pending" })).toMatchObject([{ runId: "run" }]);
  expect(await collect(verifyOf(store))).toEqual([]);
  expect(await collect(exportOf(store, "run"))).toMatchObject([{ state: { checkpointId } }]);
  expect(await store.promote()).toMatchObject({
    runs: [{ runId: "run", sequence: 2, missing: 0 }],
  });
  await store.close();
});

test("a copy of a primary with only the four methods catches up with its newest checkpoint", async () => {
  const primary = only(new MemoryStore(), ...saving);
  const [copy, own] = [sqlite(), only(sqlite(), ...saving, "import")];
  const first = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(primary);
  const away = mirror(primary, [copy, own]);
  expect((await away.promote()).runs).toEqual([{ runId: "run", sequence: 0, missing: 1 }]);
  await away.catchUp();
  const { checkpointId } = await first.set("n", 1).checkpoint(primary);
  expect(await away.catchUp()).toMatchObject([{ saves: 0 }, { saves: 0 }]);
  expect((await copy.load<Count>("run")).checkpointId).toBe(checkpointId);
  expect((await own.load<Count>("run")).checkpointId).toBe(checkpointId);
  await away.close();
});

test("a copy that can't verify itself is promoted only if it loads", async () => {
  const copy = only(sqlite(), ...moving);
  const store = mirror(sqlite(), [copy], { mode: "sync" });
  await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  Reflect.set(copy, "load", () => Promise.reject(new Error("the disk is gone")));
  await expect(store.promote()).rejects.toThrow(
    'replica 0 can\'t be promoted: checkpoint 1 of run "run" is unreadable',
  );
  await store.close();
});

test("a copy of a custom store follows its saves, deletes and prunes", async () => {
  const primary = sqlite();
  const copy = only(sqlite(), ...moving);
  const store = mirror(primary, [copy], { mode: "sync" });
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  await state.set("n", 1).checkpoint(store);
  const ids = await checkpointIds(primary, "run");
  expect(ids).toHaveLength(2);
  expect(await checkpointIds(copy, "run")).toEqual(ids);
  expect(await store.catchUp()).toMatchObject([{ saves: 0, error: undefined }]);
  expect(await checkpointIds(copy, "run")).toEqual(ids);
  expect((await store.promote()).runs).toEqual([{ runId: "run", sequence: 2, missing: 0 }]);

  const done = State.fromJSON<Count>({
    ...state.toJSON(),
    runId: "done",
    sequence: 0,
    status: "completed",
  });
  await store.save(done);
  expect(await store.prune({ maxRuns: 0, dryRun: true })).toEqual(["done"]);
  expect((await copy.list()).sort()).toEqual(["done", "run"]);
  expect(await store.prune({ maxRuns: 0 })).toEqual(["done"]);
  expect(await copy.list()).toEqual(["run"]);
  await store.delete("run");
  expect(await copy.list()).toEqual([]);
  await store.close();
});

test("a primary that can't export is copied by its history", async () => {
  const first = sqlite();
  const primary = only(first, ...saving, "history");
  const copy = sqlite();
  const store = mirror(primary, [copy], { mode: "sync" });
  // Not through the mirror, so that it has to be found.
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(primary);
  await state.set("n", 1).checkpoint(primary);
  await store.catchUp();
  expect(await checkpointIds(copy, "run")).toEqual(await checkpointIds(first, "run"));
  expect((await collect(exportOf(store, "run"))).map(({ state }) => state.sequence)).toEqual([
    1, 2,
  ]);
  await store.close();
});

test("imported runs and graph topologies are copied", async () => {
  const source = sqlite();
  await State.create<Count>({ n: 3 }, { runId: "moved" }).checkpoint(source);
  const copy = sqlite();
  const store = mirror(sqlite(), [copy], { mode: "sync" });
  await store.import(source.export("moved"));
  expect((await copy.load<Count>("moved")).data.n).toBe(3);
  await store.import([]);
  expect(await copy.list()).toEqual(["moved"]);
  const { topology } = linear(["a"]);
  await store.saveTopology(topology);
  expect(await copy.topology(topology.fingerprint)).toEqual(topology);
  expect(await store.topology(topology.fingerprint)).toEqual(topology);
  await source.close();
  await store.close();
});

test("a copy that another writer reached first is synchronized by comparing", async () => {
  const [primary, copy] = [sqlite(), sqlite()];
  const store = mirror(primary, [copy], { mode: "sync" });
  const other = mirror(primary, [copy], { mode: "sync" });
  const first = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  const second = await first.set("n", 1).checkpoint(other);
  await second.set("n", 2).checkpoint(store);
  const fourth = await (await store.load<Count>("run")).set("n", 3).checkpoint(other);
  expect((await copy.load<Count>("run")).checkpointId).toBe(fourth.checkpointId);
  await store.close();
});

test("leftovers and quarantined files do not prevent a promotion", async () => {
  const copy = sqlite();
  Reflect.set(copy, "verify", async function* () {
    yield { runId: "run", sequence: 1, problem: "leftover" };
    yield { runId: "run", sequence: 2, problem: "quarantined" };
  });
  const store = mirror(sqlite(), [copy], { mode: "sync" });
  await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  expect((await store.promote()).runs).toEqual([{ runId: "run", sequence: 1, missing: 0 }]);
  await store.close();
});

test("a failing copy is one process warning if no handler takes it", async () => {
  const warnings: string[] = [];
  const hear = (warning: Error & { code?: string }): void => {
    if (warning.code === "WAYMARK_MIRROR_BEHIND") warnings.push(warning.message);
  };
  process.on("warning", hear);
  const away = (): SqliteStore => {
    const copy = sqlite();
    Reflect.set(copy, "append", () => Promise.reject(new Error("the copy is away")));
    Reflect.set(copy, "import", () => Promise.reject(new Error("the copy is away")));
    return copy;
  };
  const onError = (): void => {
    throw new Error("the handler failed");
  };
  for (const options of [{ mode: "sync" }, { mode: "sync", onError }] as const) {
    // The process warns once of each position; no other test has a third copy that fails.
    const store = mirror(sqlite(), [sqlite(), sqlite(), away()], options);
    await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
    expect(store.lag()[2]).toMatchObject({ saves: 1, error: "the copy is away" });
    await store.close();
  }
  // A warning is emitted in the next turn.
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", hear);
  expect(warnings).toEqual(['replica 2 of a mirror is behind, since run "run": the copy is away']);
});

test("a mirror of an address lists its unreadable runs", async () => {
  const root = newFolder();
  const store = mirror(getCheckpointStore(`file:${root}`), [sqlite()]);
  await State.create<Count>({ n: 0 }, { runId: "damaged" }).checkpoint(store);
  for (const name of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (name.endsWith(".json")) writeFileSync(join(root, name), "{");
  }
  expect(await store.unreadable?.()).toEqual(["damaged"]);
  expect(await (await opened<CheckpointStore>(store)).unreadable?.()).toEqual(["damaged"]);
  await store.close();
});

test("a replica that can't import is reported once it is open", async () => {
  registerCheckpointStore("four methods", async () => only(new MemoryStore(), ...saving));
  const errors: unknown[] = [];
  const store = mirror(sqlite(), [getCheckpointStore("four methods")], {
    mode: "sync",
    onError: (error) => errors.push(error),
  });
  await State.create<Count>({ n: 0 }).checkpoint(store);
  expect(errors).toMatchObject([{ message: "replica has no import" }]);
  await store.close();
});
