import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  CheckpointCorruptionError,
  type GraphConfig,
  isWaymarkError,
  State,
  StateGraph,
} from "waymark";
import { FileStore } from "waymark/stores/file";
import { CrashDisk } from "../../../src/testing/crash-file-system.js";
import { type Count, filesOf, listen, newFolder, nextStep, saveTimes, tamper } from "../folders.js";

const flip =
  (index: number) =>
  (bytes: Uint8Array): Uint8Array =>
    bytes.map((byte, at) => (at === index ? byte ^ (1 << (index % 8)) : byte));

describe("a damaged checkpoint", () => {
  test("is detected whichever byte is flipped", async () => {
    const disk = new CrashDisk();
    const store = new FileStore({ root: "/w" }, disk.mount());
    await saveTimes(store, 2);
    const saved = disk.settled();
    const path = "/w/run/checkpoint_0002.json";
    const { length } = saved.contents().get(path) ?? [];
    expect(length).toBeGreaterThan(400);
    for (let index = 0; index < Number(length); index++) {
      const tried = saved.settled();
      tried.tamper(path, flip(index));
      const { context, events } = listen();
      const again = new FileStore({ root: "/w" }, tried.mount());
      const { data } = await again.load<Count>("run", {}, context);
      expect([index, data.n, events.map(({ type }) => type)]).toEqual([
        index,
        1,
        ["checkpoint.quarantine", "checkpoint.warning"],
      ]);
    }
  });

  test("is detected wherever it is truncated", async () => {
    const disk = new CrashDisk();
    await saveTimes(new FileStore({ root: "/w" }, disk.mount()), 2);
    const path = "/w/run/checkpoint_0002.json";
    const length = disk.contents().get(path)?.length ?? 0;
    for (let end = 0; end < length; end++) {
      const tried = disk.settled();
      tried.tamper(path, (bytes) => bytes.slice(0, end));
      const again = new FileStore({ root: "/w" }, tried.mount());
      expect((await again.load<Count>("run")).data.n).toBe(1);
    }
  });

  test("is quarantined and reported with both hashes, and the next older one is used", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 3);
    const path = join(root, "run/checkpoint_0003.json");
    const sha256 = JSON.parse(readFileSync(path, "utf8")).sha256;
    tamper(path, (bytes) => bytes.toString().replace('"n":3', '"n":4'));
    const corrupt = readFileSync(path);
    const { context, events } = listen();
    const state = await store.load<Count>("run", {}, context);
    expect(state.data.n).toBe(2);
    const file = join(root, "run/quarantine/checkpoint_0003.json");
    expect(events).toMatchObject([
      {
        type: "checkpoint.quarantine",
        data: { file, expected: sha256, actual: expect.stringMatching(/^[\da-f]{64}$/) },
      },
      { type: "checkpoint.warning", data: { kind: "fallback" } },
    ]);
    expect(readFileSync(file)).toEqual(corrupt);
    expect(filesOf(root)).toEqual(["checkpoint_0001.json", "checkpoint_0002.json", "quarantine"]);
    // The history continues after all that was ever there.
    const next = await store.save(nextStep(state.set("n", 30)));
    expect([next.sequence, next.data.n]).toEqual([4, 30]);
    expect((await store.history("run")).map(({ sequence }) => sequence)).toEqual([4, 2, 1]);
    expect((await store.history("run"))[0]?.parentId).toBe(state.checkpointId);
  });

  test("is skipped even if several are corrupt", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 4);
    for (const n of [2, 3, 4]) tamper(join(root, `run/checkpoint_000${n}.json`), () => "{}");
    const { context, events } = listen();
    expect((await store.load<Count>("run", {}, context)).data.n).toBe(1);
    expect(events.filter(({ type }) => type === "checkpoint.quarantine")).toHaveLength(3);
    expect(readdirSync(join(root, "run/quarantine"))).toHaveLength(3);
  });

  test("the error lists all of them if none is intact, and later says that they were set aside", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 2);
    for (const n of [1, 2]) tamper(join(root, `run/checkpoint_000${n}.json`), () => "");
    const loading = (): Promise<unknown> => store.load("run").catch((thrown: unknown) => thrown);
    const [first, second] = [await loading(), await loading()];
    for (const error of [first, second]) expect(error).toBeInstanceOf(CheckpointCorruptionError);
    expect(String(first)).toMatch(/checkpoint_0002\.json.*checkpoint_0001\.json/);
    expect(String(second)).toContain(`set aside in ${root}`);
    expect(await store.list()).toEqual([]);
  });

  test("requested by step or id is reported as corrupt, not as missing", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    const saved = await saveTimes(store, 2);
    tamper(join(root, "run/checkpoint_0002.json"), (bytes) =>
      bytes.toString().replace('"n":2', '"n":9'),
    );
    await expect(store.load("run", { checkpointId: saved.checkpointId })).rejects.toThrow(
      CheckpointCorruptionError,
    );
    await expect(store.load("run", { checkpointId: saved.checkpointId })).rejects.toThrow(
      "has no checkpoint with the id",
    );
  });

  test("gets a different name from one already in quarantine", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 3);
    for (const text of ["first", "second"]) {
      writeFileSync(join(root, "run/checkpoint_0003.json"), text);
      await store.load("run");
    }
    const aside = join(root, "run/quarantine");
    expect(
      readdirSync(aside).map((name) => [name, readFileSync(join(aside, name), "utf8")]),
    ).toEqual([
      ["checkpoint_0003.1.json", "second"],
      ["checkpoint_0003.json", "first"],
    ]);
  });

  test("is skipped where files can't be moved", async () => {
    const disk = new CrashDisk();
    await saveTimes(new FileStore({ root: "/w" }, disk.mount()), 2);
    disk.tamper("/w/run/checkpoint_0002.json", () => new Uint8Array());
    const readOnly = disk.mount((call, path) => {
      if (call === "mkdir") throw Object.assign(new Error(`EROFS: '${path}'`), { code: "EROFS" });
    });
    const { context, events } = listen();
    const state = await new FileStore({ root: "/w" }, readOnly).load<Count>("run", {}, context);
    expect([state.data.n, state.sequence]).toEqual([1, 2]);
    expect(events[0]).toMatchObject({
      type: "checkpoint.error",
      data: {
        action: "load",
        error: expect.stringMatching(/checkpoint_0002.json is corrupt.*EROFS/),
      },
    });
  });
});

describe("a run with corrupt checkpoints", () => {
  const counting = (
    store: FileStore,
    config: GraphConfig<Count> = {},
  ): StateGraph<Count, "one" | "two"> =>
    new StateGraph<Count>({ checkpoint: { store, interval: 1, preserve: true }, ...config })
      .addNode("one", ({ data }) => ({ n: data.n + 1 }))
      .addNode("two", ({ data }) => ({ n: data.n + 10 }))
      .addEdge("one", "two")
      .setEntryPoint("one")
      .setExitPoint("two");

  const corruptAll = (root: string): void => {
    for (const name of filesOf(root).filter((file) => file.endsWith(".json"))) {
      tamper(join(root, "run", name), (bytes) => bytes.subarray(0, 100));
    }
  };

  test("resumes from the newest intact one", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await counting(store).execute(State.create<Count>({ n: 0 }, { runId: "run" }));
    tamper(join(root, "run/checkpoint_0003.json"), () => "gone");
    const types: string[] = [];
    const graph = counting(store, { observer: ({ type }) => types.push(type) });
    const final = await graph.resume("run");
    expect([final.data.n, final.sequence, final.step]).toEqual([11, 5, 2]);
    expect(types).toContain("checkpoint.quarantine");
    await store.close();
  });

  test("is refused by resume, and started over with a warning by resumeOrStart", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await counting(store).execute(State.create<Count>({ n: 0 }, { runId: "run" }));
    corruptAll(root);
    await expect(counting(store).resume("run")).rejects.toThrow(CheckpointCorruptionError);
    const warnings: unknown[] = [];
    const graph = counting(store).on("checkpoint.warning", ({ data }) => warnings.push(data));
    const final = await graph.resumeOrStart(State.create<Count>({ n: 100 }, { runId: "run" }));
    expect(final.data.n).toBe(111);
    expect(warnings).toHaveLength(1);
    await store.close();
    // What was corrupt is still there, and its numbers were not used again.
    expect(readdirSync(join(root, "run/quarantine"))).toHaveLength(3);
    expect((await store.history("run")).map(({ sequence }) => sequence)).toEqual([6, 5, 4]);
  });

  test("is started over by only one of two processes", async () => {
    const root = newFolder();
    await saveTimes(new FileStore({ root }), 2);
    corruptAll(root);
    const outcomes = await Promise.allSettled(
      [new FileStore({ root }), new FileStore({ root })].map(async (store) => {
        await store.load("run").catch(() => {});
        return store.save(State.create({}, { runId: "run" }));
      }),
    );
    const codes = outcomes.map((outcome) =>
      outcome.status === "fulfilled"
        ? outcome.value.sequence
        : isWaymarkError(outcome.reason, "CHECKPOINT_CONFLICT"),
    );
    expect(codes.sort()).toEqual([3, true]);
  });

  test("keeps its quarantine when it is deleted", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    await saveTimes(store, 3);
    tamper(join(root, "run/checkpoint_0003.json"), () => "evidence");
    await store.load("run");
    await store.delete("run");
    expect(filesOf(root)).toEqual(["quarantine"]);
    expect(await store.list()).toEqual([]);
  });
});
