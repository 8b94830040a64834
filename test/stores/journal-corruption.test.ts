import { readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CheckpointCorruptionError, State, StateGraph } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { CrashDisk } from "../../src/testing/crash-file-system.js";
import { type Count, listen, newFolder, saveTimes } from "./folders.js";

const LOG = ".log/log_0001.jsonl";
const options = { durability: "os", snapshotEvery: 3, keep: 10 } as const;
const open = (root: string): JournalStore => new JournalStore({ ...options, root });

/** The names of what is in quarantine. */
function quarantined(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => /quarantine\/./.test(name))
    .sort();
}

/** What a store that has just been opened finds of a run. */
async function look(root: string) {
  const store = open(root);
  const { context, events } = listen();
  const newest = await store.load<Count>("run", {}, context);
  const loadable: number[] = [];
  for (const { checkpointId, sequence } of await store.history("run")) {
    const loaded = await store.load("run", { checkpointId }, context).catch(() => undefined);
    if (loaded !== undefined) loadable.push(sequence);
  }
  return { store, newest, loadable, events: events.map(({ type }) => type) };
}

/** A run of six records, the middle one a snapshot: 1 whole, 2 and 3 patches, 4 whole, 5 and 6 patches. */
async function six(): Promise<{ root: string; path: string; lines: string[] }> {
  const root = newFolder();
  await saveTimes(open(root), 6);
  const path = join(root, LOG);
  return { root, path, lines: readFileSync(path, "utf8").split("\n").filter(Boolean) };
}

const withLine = (lines: readonly string[], bad: number, change: (line: string) => string) =>
  `\n${lines.map((line, index) => (index === bad - 1 ? change(line) : line)).join("\n")}\n`;

describe("a record that is not what was written", () => {
  const usable: readonly (readonly [number, number, readonly number[]])[] = [
    [1, 6, [6, 5, 4]],
    [2, 6, [6, 5, 4, 1]],
    [4, 3, [3, 2, 1]],
    [5, 4, [4, 3, 2, 1]],
    [6, 5, [5, 4, 3, 2, 1]],
  ];

  test.each(usable)(
    "the %ith of six: all that does not need it stays usable",
    async (bad, n, rest) => {
      const { root, path, lines } = await six();
      const change = (line: string): string => line.replace(/"(reason|value)":/, '"Reason":');
      writeFileSync(path, withLine(lines, bad, change));
      const { newest, loadable, events, store } = await look(root);
      expect([newest.data.n, loadable]).toEqual([n, rest]);
      if (bad > 3) expect(events).toContain("checkpoint.quarantine");
      // It goes on after all that was ever there.
      expect((await store.save(newest.set("n", 7))).sequence).toBe(7);
      expect((await open(root).load<Count>("run")).data.n).toBe(7);
    },
  );

  test.each(usable)(
    "the %ith of six, which names another run: the same, and it is told",
    async (bad, n, rest) => {
      const { root, path, lines } = await six();
      writeFileSync(
        path,
        withLine(lines, bad, (line) => line.replace('"runId":"run"', '"runId":"rum"')),
      );
      const { newest, loadable, events, store } = await look(root);
      expect([newest.data.n, loadable, events]).toEqual([n, rest, ["checkpoint.quarantine"]]);
      expect(quarantined(root)).toHaveLength(1);
      await store.save(newest.set("n", 7));
      await store.compact();
      expect((await open(root).load<Count>("run")).data.n).toBe(7);
    },
  );

  test("one that names another run that is there is seen by both", async () => {
    const root = newFolder();
    const store = open(root);
    let one = State.create<Count>({ n: 0 }, { runId: "run-1" });
    const three = await saveTimes(store, 2, "run-3");
    for (let n = 1; n <= 4; n++) one = await store.save(one.set("n", n));
    await store.close();
    const path = join(root, LOG);
    const lines = readFileSync(path, "utf8").split("\n").filter(Boolean);
    writeFileSync(
      path,
      withLine(lines, 4, (line) => line.replace('"runId":"run-1"', '"runId":"run-3"')),
    );
    const again = open(root);
    expect((await again.load<Count>("run-1")).data.n).toBe(4);
    expect((await again.load<Count>("run-3")).data.n).toBe(three.data.n);
  });

  test("is told whichever bit was flipped, or the newest State does not need it", async () => {
    const disk = new CrashDisk();
    await saveTimes(new JournalStore({ root: "/w" }, disk.mount()), 3);
    const path = `/w/${LOG}`;
    const length = disk.contents().get(path)?.length ?? 0;
    expect(length).toBeGreaterThan(1000);
    for (let at = 0; at < length; at++) {
      const tried = disk.settled();
      tried.tamper(path, (bytes) =>
        bytes.map((byte, index) => (index === at ? byte ^ (1 << (at % 8)) : byte)),
      );
      const { context, events } = listen();
      const again = new JournalStore({ root: "/w" }, tried.mount());
      const loaded = await again.load<Count>("run", {}, context).catch((error: unknown) => error);
      const { n = 0 } = loaded instanceof State ? (loaded.data as Count) : {};
      if (n === 3) continue;
      expect([1, 2, 0], `byte ${at}`).toContain(n);
      expect(
        events.map(({ type }) => type),
        `byte ${at}`,
      ).toContain("checkpoint.quarantine");
    }
  });

  test("a torn tail is cut off without a word, at every byte", async () => {
    const { root, path, lines } = await six();
    const last = `${lines.at(-1)}\n`;
    const before = Buffer.from(`\n${lines.slice(0, -1).join("\n")}\n`);
    for (let length = 0; length < last.length; length += 5) {
      writeFileSync(path, Buffer.concat([before, Buffer.from(last.slice(0, length))]));
      const { context, events } = listen();
      const store = open(root);
      const loaded = await store.load<Count>("run", {}, context);
      expect([loaded.data.n, events]).toEqual([5, []]);
      const saved = await store.save(loaded.set("n", 9));
      await store.close();
      expect((await store.load("run", {}, context)).toJSON()).toEqual(saved.toJSON());
      expect(events).toEqual([]);
      await store.close();
    }
  });
});

describe("a run of which nothing is whole", () => {
  const counting = (store: JournalStore) =>
    new StateGraph<Count>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("count", ({ data }) => ({ n: data.n + 1 }))
      .setEntryPoint("count")
      .setExitPoint("count");

  /** Makes all records of a run unreadable, in the log or moved out of it. */
  async function spoiled(compacted: boolean): Promise<string> {
    const root = newFolder();
    const store = open(root);
    await counting(store).execute(State.create<Count>({ n: 0 }, { runId: "run" }));
    if (compacted) await store.compact();
    await store.close();
    const path = join(root, compacted ? "run/records_0001.jsonl" : LOG);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll('"reason":', '"Reason":'));
    return root;
  }

  describe.each([
    ["in the log", false],
    ["moved out of the log", true],
  ])("%s", (_, compacted) => {
    test("is listed, refused by resume, and started afresh by resumeOrStart", async () => {
      const root = await spoiled(compacted);
      expect(await open(root).list()).toEqual(["run"]);
      await expect(counting(open(root)).resume("run")).rejects.toThrow(CheckpointCorruptionError);
      expect(quarantined(root).length).toBeGreaterThan(0);
      const store = open(root);
      const warnings: unknown[] = [];
      const graph = counting(store).on("checkpoint.error", ({ data }) => warnings.push(data));
      const final = await graph.resumeOrStart(State.create<Count>({ n: 100 }, { runId: "run" }));
      expect([final.data.n, warnings]).toMatchObject([101, [{ action: "load" }]]);
      await store.compact();
      expect((await open(root).load<Count>("run")).data.n).toBe(101);
    });

    test("of two that start it afresh, one wins", async () => {
      const root = await spoiled(compacted);
      const outcomes = await Promise.allSettled(
        [open(root), open(root)].map((store) => store.save(State.create({}, { runId: "run" }))),
      );
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    });

    test("can be deleted, and what is in its quarantine stays", async () => {
      const root = await spoiled(compacted);
      const store = open(root);
      await store.load("run").catch(() => {});
      await store.delete("run");
      expect(await store.list()).toEqual([]);
      expect((await store.save(State.create<Count>({ n: 5 }, { runId: "run" }))).sequence).toBe(1);
      await store.close();
      expect((await open(root).load<Count>("run")).data.n).toBe(5);
      expect(quarantined(root).length).toBeGreaterThan(0);
    });

    test("stays refused once its log is compacted", async () => {
      const root = await spoiled(compacted);
      const store = open(root);
      await saveTimes(store, 1, "other");
      await store.compact();
      await expect(store.load("run")).rejects.toThrow(CheckpointCorruptionError);
    });
  });
});

describe("a file of records that was moved out of the log", () => {
  /** A run whose first records are in one file, the later ones in a second, the last in the log. */
  async function moved(): Promise<{ root: string; files: string[] }> {
    const root = newFolder();
    const store = new JournalStore({ ...options, root, keep: 100 });
    let state = State.create({ n: 0, pad: "" }, { runId: "run" });
    for (let n = 1; n <= 12; n++) {
      state = await store.save(state.merge({ n, pad: "x".repeat(n < 7 ? 3000 : 10) }));
      if (n === 6 || n === 9) await store.compact();
    }
    await store.close();
    const files = readdirSync(join(root, "run")).sort();
    return { root, files: files.map((name) => join(root, "run", name)) };
  }

  test("that was emptied is told, and all that does not need it stays usable", async () => {
    const { root, files } = await moved();
    expect(files).toHaveLength(2);
    truncateSync(files[1] ?? "");
    const { newest, loadable, events, store } = await look(root);
    expect([newest.data.n, loadable]).toEqual([12, [12, 11, 10, 6, 5, 4, 3, 2, 1]]);
    expect(events).toEqual(["checkpoint.quarantine"]);
    await store.save(newest.set("n", 13));
    await store.compact();
    expect((await open(root).load<Count>("run")).data.n).toBe(13);
    expect(quarantined(root)).toEqual(["run/quarantine/record_0000.records_0002.0.json"]);
  });

  test("that was emptied and was all there is makes its run corrupt, not missing", async () => {
    const root = newFolder();
    const store = open(root);
    await saveTimes(store, 3);
    await store.compact();
    await store.close();
    truncateSync(join(root, "run/records_0001.jsonl"));
    const again = open(root);
    expect([await again.list(), await again.runs(), await again.history("run")]).toEqual([
      ["run"],
      [],
      [],
    ]);
    await expect(again.load("run")).rejects.toThrow(/records_0001\.jsonl is corrupt.*empty file/);
  });

  test("of another run is not used, and not lost", async () => {
    const [root, other] = [newFolder(), newFolder()];
    for (const [folder, runId] of [
      [root, "run"],
      [other, "other"],
    ] as const) {
      const store = open(folder);
      await saveTimes(store, 3, runId);
      await store.compact();
      await store.close();
    }
    const foreign = readFileSync(join(other, "other/records_0001.jsonl"));
    writeFileSync(join(root, "run/records_0001.jsonl"), foreign);
    await expect(open(root).load("run")).rejects.toThrow(/expected run run, found run other/);
    const [name = ""] = quarantined(root);
    expect(readFileSync(join(root, name))).toEqual(foreign);
  });

  test("in which index and records are broken is read as far as it goes", async () => {
    const { root, files } = await moved();
    const path = files[0] ?? "";
    const lines = readFileSync(path, "utf8").split("\n");
    const broken = lines.map((line, index) => (index < 3 ? `#${line}` : line));
    writeFileSync(path, broken.join("\n"));
    const { newest, loadable, events } = await look(root);
    expect([newest.data.n, loadable]).toEqual([12, [12, 11, 10, 9, 8, 7, 6, 5, 4]]);
    expect(events).toEqual(["checkpoint.quarantine", "checkpoint.quarantine"]);
  });
});
