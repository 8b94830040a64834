import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CheckpointCorruptionError, CheckpointSaveError, State } from "waymark";
import { JournalStore } from "waymark/stores/journal";
import { type Count, newFolder, saveTimes } from "./folders.js";

const open = (root: string): JournalStore => new JournalStore({ root, durability: "os" });
const count = (runId = "run"): State<Count> => State.create<Count>({ n: 1 }, { runId });

describe("a symbolic link", () => {
  test("in the place of the log's folder is not followed", async () => {
    const [root, outside] = [newFolder(), newFolder()];
    symlinkSync(outside, join(root, ".log"));
    await expect(open(root).save(count())).rejects.toThrow(CheckpointSaveError);
    await expect(open(root).load("run")).rejects.toThrow(join(root, ".log"));
    expect(readdirSync(outside)).toEqual([]);
  });

  test("in the place of a file of the log is not followed", async () => {
    const [root, outside] = [newFolder(), join(newFolder(), "outside")];
    mkdirSync(join(root, ".log"));
    writeFileSync(outside, "");
    symlinkSync(outside, join(root, ".log/log_0001.jsonl"));
    await expect(open(root).save(count())).rejects.toThrow("wants to be a file and is a symbolic");
    expect(readFileSync(outside, "utf8")).toBe("");
  });

  test("in the place of a run's folder is not followed, and nothing is lost", async () => {
    const [root, outside] = [newFolder(), newFolder()];
    const store = open(root);
    await saveTimes(store, 3);
    symlinkSync(outside, join(root, "run"));
    await expect(store.compact()).rejects.toThrow(join(root, "run"));
    expect(readdirSync(outside)).toEqual([]);
    rmSync(join(root, "run"));
    expect((await open(root).load<Count>("run")).data.n).toBe(3);
  });

  test("in the place of a file of records or of the quarantine is not followed", async () => {
    const [root, outside] = [newFolder(), newFolder()];
    const store = open(root);
    await saveTimes(store, 3);
    await store.compact();
    await store.close();
    const path = join(root, "run/records_0001.jsonl");
    const bytes = readFileSync(path);
    writeFileSync(join(outside, "records"), bytes);
    rmSync(path);
    symlinkSync(join(outside, "records"), path);
    await expect(open(root).load("run")).rejects.toThrow(path);
    rmSync(path);
    writeFileSync(path, bytes.subarray(0, 10));
    symlinkSync(outside, join(root, "run/quarantine"));
    await expect(open(root).load("run")).rejects.toThrow(CheckpointCorruptionError);
    expect(readdirSync(outside)).toEqual(["records"]);
  });
});

describe("what is no file of a journal", () => {
  test.each([".log/log_0001.jsonl", ".log/anchors_0001.jsonl", "run/records_0001.jsonl"])(
    "a folder named %s is refused by name and stays where it is",
    async (name) => {
      const root = newFolder();
      mkdirSync(join(root, name), { recursive: true });
      const path = join(root, name);
      await expect(open(root).load("run")).rejects.toThrow(`${path} wants to be a file`);
      await expect(open(root).save(count())).rejects.toThrow(path);
      expect(readdirSync(path)).toEqual([]);
    },
  );

  test("text in the place of the log is kept in quarantine, and the log goes on", async () => {
    const root = newFolder();
    mkdirSync(join(root, ".log"));
    writeFileSync(join(root, ".log/log_0001.jsonl"), "somebody's\n{}\n");
    const store = open(root);
    await store.save(count());
    expect((await store.load<Count>("run")).data.n).toBe(1);
    const aside = join(root, ".log/quarantine");
    const texts = readdirSync(aside).map((name) => readFileSync(join(aside, name), "utf8"));
    expect(texts.sort()).toEqual(["somebody's", "{}"]);
  });
});

describe("a log that is removed while the store has it open", () => {
  test("is no place to save to: the run is gone, and others begin a new log", async () => {
    const root = join(newFolder(), "root");
    const store = open(root);
    const state = await store.save(count());
    rmSync(root, { recursive: true });
    await expect(store.save(state.set("n", 2))).rejects.toMatchObject({
      code: "CHECKPOINT_CONFLICT",
    });
    expect(existsSync(join(root, "run"))).toBe(false);
    await store.save(count("new"));
    expect((await open(root).load<Count>("new")).data.n).toBe(1);
    expect(await store.list()).toEqual(["new"]);
    await store.close();
  });

  test("a save that comes first after it is there for others", async () => {
    const root = join(newFolder(), "root");
    const store = open(root);
    await store.save(count());
    rmSync(root, { recursive: true });
    await store.save(count("new"));
    expect((await open(root).load<Count>("new")).data.n).toBe(1);
    await store.close();
  });

  test("is not read from any more", async () => {
    const root = join(newFolder(), "root");
    const store = open(root);
    await store.save(count());
    rmSync(root, { recursive: true });
    await expect(store.load("run")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
    expect(await store.list()).toEqual([]);
    await store.close();
  });
});

describe("a log that is cut while the store has it open", () => {
  const log = (root: string): string => join(root, ".log/log_0001.jsonl");

  test("is no place to go on in for a run that was in it; others are saved and found", async () => {
    const root = newFolder();
    const store = open(root);
    const state = await saveTimes(store, 5);
    await store.save(count("other"));
    truncateSync(log(root), 100);
    await expect(store.save(state.set("n", 6))).rejects.toMatchObject({
      code: "CHECKPOINT_CONFLICT",
    });
    await store.save(count("new"));
    for (const reader of [store, open(root)]) {
      expect(await reader.list()).toEqual(["new"]);
      expect((await reader.load<Count>("new")).data.n).toBe(1);
      await reader.close();
    }
  });

  test("a save that comes first after it says the truth", async () => {
    const root = newFolder();
    const store = open(root);
    const state = await store.save(count());
    const { size } = statSync(log(root));
    await store.save(count("other"));
    truncateSync(log(root), size);
    expect((await store.save(count("new"))).sequence).toBe(1);
    expect((await store.save(state.set("n", 2))).sequence).toBe(2);
    expect((await open(root).load<Count>("run")).data.n).toBe(2);
    expect((await open(root).list()).sort()).toEqual(["new", "run"]);
    await store.close();
  });

  test("is read anew by who only reads", async () => {
    const root = newFolder();
    const store = open(root);
    await store.save(count());
    await store.history("run");
    truncateSync(log(root), 0);
    await expect(store.load("run")).rejects.toMatchObject({ code: "CHECKPOINT_NOT_FOUND" });
    await store.close();
  });
});
