import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CheckpointStore, MemoryStore, type Metadata, State, StateGraph } from "waymark";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { newFolder } from "../stores/folders.js";

const stores: Readonly<Record<string, () => CheckpointStore>> = {
  memory: () => new MemoryStore({ keep: 10 }),
  file: () => new FileStore({ root: newFolder(), keep: 10 }),
  sqlite: () => new SqliteStore({ path: join(newFolder(), "runs.db"), keep: 10 }),
};

const graphOf = (store: CheckpointStore, metadata: Metadata, fails = false) =>
  new StateGraph<{ n: number }>({ metadata, checkpoint: { store, interval: 1, preserve: true } })
    .addNode("a", () => ({ n: 1 }))
    .addNode("b", () => {
      if (fails) throw new Error("no");
      return { n: 2 };
    })
    .addEdge("a", "b")
    .setEntryPoint("a")
    .setExitPoint("b");

describe.each(Object.keys(stores))("metadata in a %s store", (name) => {
  test("consists of the run's own and the current graph's", async () => {
    const store: CheckpointStore = stores[name]?.() ?? new MemoryStore();
    const own = { customer: "acme", commit: "mine" };
    const first = graphOf(store, { customer: "none", host: "old", region: "eu" }, true);
    await first.execute(State.create({ n: 0 }, { runId: "r", metadata: own })).catch(() => {});
    expect((await store.load("r")).metadata).toEqual({ ...own, host: "old", region: "eu" });

    const second = graphOf(store, { customer: "none", host: "new", commit: "theirs" });
    const final = await second.resume("r");
    const now = { ...own, host: "new", region: "eu" };
    expect(final.metadata).toEqual(now);
    const history = await second.history("r");
    const hosts = history.map(({ reason, metadata }) => `${reason} ${metadata.host}`);
    expect(hosts.slice(0, 2)).toEqual(["complete new", "failure old"]);
    expect((await store.runs?.({ metadata: { host: "new" } }))?.map((run) => run.metadata)).toEqual(
      [now],
    );
    expect(await store.runs?.({ metadata: { host: "old" } })).toEqual([]);
    await store.close?.();
  });

  test("of a run that has ended stays unchanged", async () => {
    const store: CheckpointStore = stores[name]?.() ?? new MemoryStore();
    await graphOf(store, { host: "old" }).execute(State.create({ n: 0 }, { runId: "r" }));
    expect((await graphOf(store, { host: "new" }).resume("r")).metadata).toEqual({ host: "old" });
    await store.close?.();
  });
});
