import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type CheckpointStore, MemoryStore, type Metadata, State, StateGraph } from "waymark";
import { environment } from "waymark/environment";
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
  test("is the run's own, and that of the graph that works on it now", async () => {
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

  test("of a run that has ended stays what it was", async () => {
    const store: CheckpointStore = stores[name]?.() ?? new MemoryStore();
    await graphOf(store, { host: "old" }).execute(State.create({ n: 0 }, { runId: "r" }));
    expect((await graphOf(store, { host: "new" }).resume("r")).metadata).toEqual({ host: "old" });
    await store.close?.();
  });
});

describe("environment", () => {
  const git = (cwd: string, ...args: string[]): string =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], {
      cwd,
    }).toString();

  test("names the commit, and whether something was changed since", () => {
    const cwd = newFolder();
    writeFileSync(join(cwd, "package.json"), '{ "name": "shop", "version": "1.2.3" }');
    git(cwd, "init", "-q");
    git(cwd, "add", ".");
    git(cwd, "commit", "-qm", "first");
    const commit = git(cwd, "rev-parse", "HEAD").trim();
    expect(environment({ cwd })).toEqual({
      commit,
      dirty: false,
      host: hostname(),
      pid: process.pid,
      node: process.version,
      waymark: expect.stringMatching(/^\d+\.\d+\.\d+/),
      package: "shop@1.2.3",
    });
    writeFileSync(join(cwd, "new.txt"), "");
    expect(environment({ cwd }).dirty).toBe(true);
  });

  test("leaves out what it can't find", () => {
    const found = environment({ cwd: newFolder() });
    expect(found).not.toHaveProperty("commit");
    expect(found).not.toHaveProperty("package");
    expect(() => environment({ cwd: "" })).toThrow("environment.cwd must be a non-empty string");
  });
});
