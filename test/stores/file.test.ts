import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  CheckpointSaveError,
  ConfigError,
  getCheckpointStore,
  type NodeFunction,
  pause,
  State,
  StateGraph,
} from "waymark";
import { FileStore } from "waymark/stores/file";
import { useFakeClock } from "waymark/testing";
import { FRAME_BYTES } from "../../src/checkpoint/records/document.js";
import { checkpointName } from "../../src/stores/disk/layout.js";
import { NodeFileSystem } from "../../src/stores/disk/node-file-system.js";
import { CrashDisk, systemError } from "../../src/testing/crash-file-system.js";
import { type Count, filesOf, listen, newFolder, nextStep, saveTimes } from "./folders.js";

describe("options", () => {
  test.each([
    [{ root: "" }, "FileStore.root"],
    [{ durability: "maybe" }, "FileStore.durability"],
    [{ keep: 1 }, "FileStore.keep"],
    [{ retention: { maxAge: 3 } }, "retention.maxAge"],
    [{ maxBytes: 0 }, "FileStore.maxBytes"],
    [{ warnBytes: "much" }, "FileStore.warnBytes"],
    [{ folder: "x" }, "FileStore.folder"],
    [{ codec: { compress: "zip" } }, "compress"],
  ])("refuse %j by name", (options, name) => {
    expect(() => new FileStore(options as object)).toThrow(ConfigError);
    expect(() => new FileStore(options as object)).toThrow(name);
  });

  test("default to .waymark in the working directory at construction", () => {
    expect(new FileStore().root).toBe(join(process.cwd(), ".waymark"));
  });

  test("refuse a keep below two for a save", async () => {
    const store = new FileStore({ root: newFolder() });
    await expect(store.save(State.create({}), { keep: 1 })).rejects.toThrow(ConfigError);
  });
});

describe("a checkpoint", () => {
  test("is a JSON document readable by people and other programs", async () => {
    const root = newFolder();
    const saved = await saveTimes(new FileStore({ root }), 1);
    const text = readFileSync(join(root, "run/checkpoint_0001.json"), "utf8");
    expect(JSON.parse(text)).toMatchObject({
      waymark: 1,
      sha256: expect.stringMatching(/^[\da-f]{64}$/),
      header: { runId: "run", sequence: 1, checkpointId: saved.checkpointId },
      content: { data: { n: 1 } },
    });
    // The hash is of the header and the content, a line each.
    const lines = `sed -n '2s/^"header":\\(.*\\),$/\\1/p;3s/^"content":\\(.*\\)}$/\\1/p'`;
    const hashed = `${lines} '${root}/run/checkpoint_0001.json' | head -c -1 | sha256sum`;
    const sum = execFileSync("sh", ["-c", hashed], { encoding: "utf8" }).slice(0, 64);
    expect(JSON.parse(text).sha256).toBe(sum);
    expect(saved.bytes).toBe(text.length - FRAME_BYTES);
  });

  test("is readable only by its owner, as are the folders", async () => {
    const root = join(newFolder(), "a/b");
    await saveTimes(new FileStore({ root }), 1);
    const modes = ["..", ".", "run", "run/checkpoint_0001.json"].map(
      (path) => statSync(join(root, path)).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o700, 0o700, 0o600]);
  });

  test("leaves nothing else in the folder", async () => {
    const root = newFolder();
    await saveTimes(new FileStore({ root }), 3);
    expect(filesOf(root)).toEqual([1, 2, 3].map(checkpointName));
  });

  test("has a name that can exceed four digits", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    const saved = await saveTimes(store, 1);
    const place = { checkpointId: saved.checkpointId, sequence: 9999 };
    const text = readFileSync(join(root, "run/checkpoint_0001.json"));
    writeFileSync(join(root, "run/checkpoint_9999.json"), text);
    const next = await store.save(saved.savedAs(place));
    expect([next.sequence, (await store.load("run")).sequence]).toEqual([10_000, 10_000]);
    expect(filesOf(root)).toContain("checkpoint_10000.json");
  });
});

describe("rotation", () => {
  test("keeps the newest five, and runs while the run continues", async () => {
    const root = newFolder();
    await saveTimes(new FileStore({ root }), 12);
    expect(filesOf(root)).toEqual([8, 9, 10, 11, 12].map(checkpointName));
  });

  test("counts checkpoints of other processes", async () => {
    const root = newFolder();
    await saveTimes(new FileStore({ root, keep: Number.POSITIVE_INFINITY }), 9);
    const store = new FileStore({ root, keep: 3 });
    await store.save(nextStep(await store.load("run")));
    await store.close();
    expect(filesOf(root)).toEqual([8, 9, 10].map(checkpointName));
  });

  test("leaves foreign files alone, whatever their names", async () => {
    const root = newFolder();
    mkdirSync(join(root, "run"));
    const foreign = ["events.jsonl", "checkpoint_1.json", "upload.tmp", ".checkpoint_0001.tmp"];
    for (const name of foreign) writeFileSync(join(root, "run", name), name);
    const store = new FileStore({ root, keep: 2 });
    await saveTimes(store, 6);
    expect(filesOf(root)).toEqual(
      ["checkpoint_0005.json", "checkpoint_0006.json", ...foreign].sort(),
    );
    await store.delete("run");
    expect(filesOf(root)).toEqual([...foreign].sort());
    expect(await store.list()).toEqual([]);
  });

  test.each<[string, string, NodeFunction<Count>]>([
    ["failed", "failure", () => Promise.reject(new Error("no"))],
    ["paused", "pause", (state) => pause(state, { reason: "review" })],
  ])("keeps the checkpoint of a run that %s among the newest", async (status, why, end) => {
    const store = new FileStore({ root: newFolder(), keep: 2 });
    // It is kept also where no other checkpoint is wanted for long.
    const graph = new StateGraph<Count>({ checkpoint: { store, interval: 1 } })
      .addNode("count", ({ data }) => ({ n: data.n + 1 }))
      .addNode("end", end)
      .addEdge("count", "count", ({ data }) => data.n < 5)
      .addEdge("count", "end")
      .setEntryPoint("count")
      .setExitPoint("end");
    await graph.execute(State.create<Count>({ n: 0 }, { runId: "run" })).catch(() => {});
    await store.close();
    const [newest, ...older] = await store.history("run");
    expect([newest?.status, newest?.reason, older.length]).toEqual([status, why, 1]);
    expect((await new FileStore({ root: store.root }).load("run")).status).toBe(status);
  });
});

describe("size", () => {
  test("emits a warning for a checkpoint above warnBytes", async () => {
    const store = new FileStore({ root: newFolder(), warnBytes: 2000 });
    const { context, events } = listen();
    const small = await store.save(State.create({ text: "" }), context);
    expect(events).toEqual([]);
    const large = await store.save(small.set("text", "x".repeat(2000)), context);
    expect(events).toEqual([
      {
        type: "checkpoint.warning",
        data: {
          kind: "size",
          node: "",
          message: `the checkpoint has ${large.bytes} bytes, more than warnBytes (2000)`,
        },
      },
    ]);
  });

  test("defaults to a warning at 500 KB and a limit of 100 MB", async () => {
    const store = new FileStore({ root: newFolder(), durability: "os" });
    const { context, events } = listen();
    const state = await store.save(State.create({ text: "x".repeat(500 * 1024 - 1000) }), context);
    expect(events).toEqual([]);
    await store.save(state.set("text", "x".repeat(500 * 1024)), context);
    expect(events).toHaveLength(1);
    const huge = State.create({
      texts: Array.from({ length: 101 }, () => "x".repeat(1024 * 1024)),
    });
    await expect(store.save(huge)).rejects.toThrow("more than maxBytes (104857600)");
  });

  test("refuses a checkpoint above maxBytes before anything is written", async () => {
    const root = join(newFolder(), "root");
    const store = new FileStore({ root, maxBytes: 2000 });
    const huge = State.create({ text: "x".repeat(2000) });
    await expect(store.save(huge)).rejects.toThrow(CheckpointSaveError);
    await expect(store.save(huge)).rejects.toMatchObject({ code: "CHECKPOINT_SAVE", state: huge });
    expect(existsSync(root)).toBe(false);
    const state = await store.save(State.create({ text: "" }));
    await expect(store.save(state.set("text", "x".repeat(2000)))).rejects.toThrow(
      "maxBytes (2000)",
    );
    expect((await store.load<{ text: string }>(state.runId)).data.text).toBe("");
    expect((await store.save(state.set("text", "y"))).sequence).toBe(2);
  });

  test("names the checkpoint of a run that was too large", async () => {
    const store = new FileStore({ root: newFolder(), maxBytes: 2000 });
    const graph = new StateGraph<{ text: string }>({ checkpoint: { store, interval: 1 } })
      .addNode("grow", () => ({ text: "x".repeat(2000) }))
      .setEntryPoint("grow")
      .setExitPoint("grow");
    const error = await graph
      .execute(State.create({ text: "" }))
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE", nodeName: "grow" });
    expect(String(error)).toMatch(/checkpoint after "grow" could not be saved.*maxBytes \(2000\)/);
  });
});

describe("retention", () => {
  const finished = async (store: FileStore, runId: string): Promise<void> => {
    const json = State.create({}, { runId }).toJSON();
    await store.save(State.fromJSON({ ...json, status: "completed" }));
  };

  test("removes old finished runs in the background, periodically", async () => {
    const hour = 60 * 60 * 1000;
    const clock = useFakeClock(Date.parse("2030-03-01T00:00:00Z"));
    try {
      const store = new FileStore({ root: newFolder(), retention: { maxAgeDays: 1 } });
      await finished(store, "old");
      await store.close();
      await clock.advance(30 * hour);
      await finished(store, "new");
      await store.close();
      expect(await store.list()).toEqual(["new"]);
      await clock.advance(hour / 2);
      await finished(store, "newer");
      await store.close();
      expect((await store.list()).sort()).toEqual(["new", "newer"]);
    } finally {
      clock.restore();
    }
  });

  test("does not remove a run saved to since it was listed", async () => {
    const disk = new CrashDisk();
    const other = new FileStore({ root: "/w" }, disk.mount());
    await finished(other, "run");
    let hasLooked = false;
    const goOn = async (call: string): Promise<void> => {
      if (hasLooked && call === "lstat") {
        hasLooked = false;
        await other.save(await other.load("run"));
      }
      hasLooked ||= call === "heads";
    };
    const store = new FileStore({ root: "/w" }, disk.mount(goOn));
    expect(await store.prune({ maxRuns: 0 })).toEqual([]);
    expect((await store.load("run")).sequence).toBe(2);
  });
});

describe("the registry", () => {
  test("has a store named file in .waymark of the working directory", async () => {
    const before = process.cwd();
    process.chdir(newFolder());
    try {
      const graph = new StateGraph<Count>({
        checkpoint: { store: "file", interval: 1, preserve: true },
      })
        .addNode("count", ({ data }) => ({ n: data.n + 1 }))
        .setEntryPoint("count")
        .setExitPoint("count");
      expect(existsSync(".waymark")).toBe(false);
      await graph.execute(State.create<Count>({ n: 0 }, { runId: "run" }));
      expect(filesOf(".waymark")).toEqual(["checkpoint_0001.json", "checkpoint_0002.json"]);
      expect((await graph.history("run")).map(({ node }) => node)).toEqual(["count", ""]);
      await getCheckpointStore("file").close?.();
    } finally {
      process.chdir(before);
    }
  });
});

describe("a store", () => {
  test("lists and summarises runs with long ids by their checkpoints", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    const long = "山".repeat(200);
    await saveTimes(store, 2, long);
    await saveTimes(store, 1, "short");
    writeFileSync(join(root, "README"), "not a run");
    mkdirSync(join(root, "Not-A-Run"));
    mkdirSync(join(root, "empty"));
    expect((await store.list()).sort()).toEqual(["short", long].sort());
    expect((await store.runs()).map(({ runId }) => runId).sort()).toEqual(["short", long].sort());
  });

  test("has no runs if its root is missing", async () => {
    const store = new FileStore({ root: join(newFolder(), "absent") });
    expect([await store.list(), await store.runs(), await store.history("run")]).toEqual([
      [],
      [],
      [],
    ]);
    await store.delete("run");
    expect(existsSync(store.root)).toBe(false);
  });

  test("recreates its root if it was removed", async () => {
    const root = join(newFolder(), "root");
    const store = new FileStore({ root });
    await saveTimes(store, 1, "one");
    rmSync(root, { recursive: true });
    await saveTimes(store, 1, "two");
    expect(await store.list()).toEqual(["two"]);
  });

  test("saves even where a folder can't be synced", async () => {
    const disk = new CrashDisk();
    const store = new FileStore(
      { root: "/w" },
      disk.mount((call, path) => {
        if (call === "sync" && path === "folder") throw systemError("EINVAL");
      }),
    );
    expect((await saveTimes(store, 3)).sequence).toBe(3);
  });

  test("removes the folder of a deleted run", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 3);
    await store.delete("run");
    expect(existsSync(join(root, "run"))).toBe(false);
  });

  test("caches only some runs and reads the others again", async () => {
    const store = new FileStore({ root: newFolder(), durability: "os" });
    const states = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        store.save(State.create<Count>({ n: index }, { runId: `run-${index}` })),
      ),
    );
    const again = await Promise.all(states.map((state) => store.save(state.set("n", 0))));
    expect(new Set(again.map(({ sequence }) => sequence))).toEqual(new Set([2]));
    await store.close();
  });

  test("reads unusually long headers", async () => {
    const store = new FileStore({ root: newFolder() });
    const node = "n".repeat(6000);
    const saved = await store.save(State.create({}).setCheckpointNode(node));
    expect(await store.history(saved.runId)).toMatchObject([{ node, bytes: saved.bytes }]);
  });

  test("sweeps leftovers of dead processes, not files that living ones write", async () => {
    const root = newFolder();
    await saveTimes(new FileStore({ root }), 2);
    const { owner } = new NodeFileSystem();
    const [, thread = "", started = "", place = ""] = owner.split("-");
    const gone = `${process.pid}-${thread}-${Number(started) - 1}-${place}-00000000`;
    const elsewhere = `${process.pid}-${thread}-${started}-ffffffff-00000000`;
    const names = [gone, owner, elsewhere].map((one) => `.checkpoint_0003.${one}.1.tmp`);
    for (const name of names) writeFileSync(join(root, "run", name), "half");
    const store = new FileStore({ root });
    await store.load("run");
    await store.close();
    expect(filesOf(root).filter((name) => name.endsWith(".tmp"))).toEqual(names.slice(1).sort());
  });
});
