import { join } from "node:path";
import { expect, test } from "vitest";
import { type CheckpointStore, MemoryStore, State } from "waymark";
import { mirror } from "waymark/stores/mirror";
import { SqliteStore } from "waymark/stores/sqlite";
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

test("a primary with only the four methods is copied and answers what it can", async () => {
  const primary = only(new MemoryStore(), ...saving);
  const copy = sqlite();
  const store = mirror(primary, [copy], { mode: "sync" });
  const state = await State.create<Count>({ n: 0 }, { runId: "run" }).checkpoint(store);
  const { checkpointId } = await state.set("n", 1).checkpoint(store);
  expect((await copy.load<Count>("run")).checkpointId).toBe(checkpointId);
  expect((await store.load<Count>("run")).data.n).toBe(1);
  expect(await store.list()).toEqual(["run"]);
  expect(await store.history("run")).toMatchObject([{ checkpointId, sequence: 2 }]);
  expect(await store.history("none")).toEqual([]);
  expect(await store.runs({ status: "pending" })).toMatchObject([{ runId: "run" }]);
  expect(await store.holder("run")).toBeUndefined();
  expect(await store.topology("f")).toBeUndefined();
  expect(await collect(store.verify())).toEqual([]);
  expect(await collect(store.export("run"))).toMatchObject([{ state: { checkpointId } }]);
  const claims = [await store.claim("run"), await store.claim("run")];
  for (const claim of claims) await claim?.release();
  expect(claims).not.toContain(undefined);
  expect(await store.promote()).toMatchObject({
    runs: [{ runId: "run", sequence: 2, missing: 0 }],
  });
  await store.close();
});

test("what a primary can't do is an error, not an empty result", async () => {
  const source = sqlite();
  await State.create<Count>({ n: 3 }, { runId: "moved" }).checkpoint(source);
  const store = mirror(only(new MemoryStore(), ...saving), [sqlite()], { mode: "sync" });
  for (const [name, call] of [
    ["find", () => store.find("id")],
    ["prune", () => store.prune({ maxRuns: 0 })],
    ["import", () => store.import(source.export("moved"))],
  ] as const) {
    await expect(call()).rejects.toThrow(`primary has no ${name}`);
  }
  await source.close();
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
  expect((await collect(store.export("run"))).map(({ state }) => state.sequence)).toEqual([1, 2]);
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
