import { execFileSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CheckpointCorruptionError, CheckpointSaveError, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { CrashDisk } from "../../../src/testing/crash-file-system.js";
import { type Count, filesOf, newFolder, nextStep, saveTimes } from "../folders.js";

/** A run of two checkpoints, and the path of a third. */
async function withThird(): Promise<{ root: string; store: FileStore; third: string }> {
  const root = newFolder();
  const store = new FileStore({ root });
  await saveTimes(store, 2);
  return { root, store, third: join(root, "run/checkpoint_0003.json") };
}

async function foreignDocument(runId: string, sequence: number): Promise<Buffer> {
  const root = newFolder();
  await saveTimes(new FileStore({ root, keep: 9 }), sequence, runId);
  return readFileSync(join(root, runId, `checkpoint_000${sequence}.json`));
}

describe("a foreign file in place of a checkpoint", () => {
  test.each([
    ["an empty file", async () => ""],
    ["a truncated one", async () => (await foreignDocument("run", 3)).subarray(0, 200)],
    ["other JSON", async () => '{"name":"waymark"}'],
    ["no JSON", async () => "\u0000\u0001\u0002"],
    ["a checkpoint of another run", async () => foreignDocument("other", 3)],
    ["a checkpoint of another place", async () => foreignDocument("run", 2)],
  ])("%s is neither used nor lost", async (_, make) => {
    const { root, store, third } = await withThird();
    const content = Buffer.from(await make());
    writeFileSync(third, content);
    expect((await store.load<Count>("run")).data.n).toBe(2);
    expect(readFileSync(join(root, "run/quarantine/checkpoint_0003.json"))).toEqual(content);
  });

  test("is named by the error if nothing else is there", async () => {
    const root = newFolder();
    mkdirSync(join(root, "run"));
    writeFileSync(join(root, "run/checkpoint_0001.json"), "{}");
    const error = await new FileStore({ root }).load("run").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CheckpointCorruptionError);
    expect(String(error)).toContain(join(root, "run/checkpoint_0001.json"));
  });

  test("is never overwritten by a save", async () => {
    const { store, third } = await withThird();
    const state = await store.load<Count>("run");
    writeFileSync(third, "somebody's");
    await expect(store.save(state)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
    expect(readFileSync(third, "utf8")).toBe("somebody's");
  });

  test("is moved to quarantine, not removed, by rotation and delete", async () => {
    const { root, store } = await withThird();
    writeFileSync(join(root, "run/checkpoint_0001.json"), "somebody's");
    let state = await store.load<Count>("run");
    for (let n = 0; n < 6; n++) state = await store.save(nextStep(state), { keep: 2 });
    await store.close();
    const aside = join(root, "run/quarantine");
    expect(readdirSync(aside)).toEqual(["checkpoint_0001.json"]);
    writeFileSync(join(root, "run/checkpoint_0007.json"), "another's");
    await store.delete("run");
    expect(readdirSync(aside).map((name) => readFileSync(join(aside, name), "utf8"))).toEqual([
      "somebody's",
      "another's",
    ]);
  });

  test("that is a folder is refused by name and stays where it is", async () => {
    const { root, store, third } = await withThird();
    mkdirSync(third);
    await expect(store.load("run")).rejects.toThrow(CheckpointCorruptionError);
    await expect(store.load("run")).rejects.toThrow(`${third} must be a file; found a folder`);
    await expect(store.delete("run")).rejects.toThrow(third);
    expect(lstatSync(third).isDirectory()).toBe(true);
    expect(existsSync(join(root, "run/quarantine"))).toBe(false);
  });

  test("that is a pipe is refused without waiting for it", async () => {
    const { store, third } = await withThird();
    execFileSync("mkfifo", [third]);
    await expect(store.load("run")).rejects.toThrow(third);
  });

  test.each(["open", "read"])(
    "whose %s fails is an error that names it, and stays",
    async (broken) => {
      const disk = new CrashDisk();
      await saveTimes(new FileStore({ root: "/w" }, disk.mount()), 2);
      const path = "/w/run/checkpoint_0002.json";
      let opened = "";
      const locked = disk.mount((call, of) => {
        if (call === "open") opened = of;
        if (call !== broken || opened !== path) return;
        throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
      });
      const error = new FileStore({ root: "/w" }, locked).load("run");
      await expect(error).rejects.toMatchObject({
        code: "STORE",
        message: expect.stringMatching(path),
        cause: { code: "EACCES" },
      });
      expect(disk.contents().has(path)).toBe(true);
    },
  );
});

describe("a symbolic link", () => {
  test("in place of a checkpoint is not followed", async () => {
    const { store, third } = await withThird();
    const outside = join(newFolder(), "outside.json");
    writeFileSync(outside, await foreignDocument("run", 3));
    symlinkSync(outside, third);
    await expect(store.load("run")).rejects.toThrow(
      `${third} must be a file; found a symbolic link`,
    );
    expect(await store.history("run")).toHaveLength(2);
    expect(existsSync(outside)).toBe(true);
  });

  test("in place of a run's folder is never followed", async () => {
    const root = newFolder();
    const outside = newFolder();
    await saveTimes(new FileStore({ root: outside }), 1);
    symlinkSync(join(outside, "run"), join(root, "run"));
    const store = new FileStore({ root });
    await expect(store.load("run")).rejects.toThrow(CheckpointCorruptionError);
    await expect(store.save(State.create({}, { runId: "run" }))).rejects.toThrow(
      CheckpointSaveError,
    );
    await expect(store.delete("run")).rejects.toThrow(join(root, "run"));
    expect(await store.list()).toEqual([]);
    expect(await store.runs()).toEqual([]);
    expect(filesOf(outside)).toEqual(["checkpoint_0001.json"]);
  });

  test("in place of the quarantine is not followed", async () => {
    const { root, store, third } = await withThird();
    const outside = newFolder();
    symlinkSync(outside, join(root, "run/quarantine"));
    writeFileSync(third, "corrupt");
    await expect(store.load("run")).rejects.toThrow(join(root, "run/quarantine"));
    expect(readdirSync(outside)).toEqual([]);
    // Nor does it hide this run or others.
    await saveTimes(store, 1, "other");
    expect([await store.list(), (await store.runs()).length]).toEqual([["other", "run"], 2]);
    expect(readFileSync(third, "utf8")).toBe("corrupt");
  });

  test("occupies its name even if it leads nowhere", async () => {
    const { store, third } = await withThird();
    const state = await store.load<Count>("run");
    symlinkSync("/nowhere", third);
    await expect(store.save(state)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
  });
});

describe("run ids", () => {
  test("never lead outside the root", async () => {
    const outer = newFolder();
    const root = join(outer, "root");
    const store = new FileStore({ root, durability: "os" });
    for (const runId of [
      "../x",
      "..",
      "/etc/passwd",
      "a/../../b",
      "C:\\x",
      "\\\\host\\x",
      "NUL",
      "%2e%2e",
    ]) {
      await store.save(State.create({}, { runId }));
    }
    expect(readdirSync(outer)).toEqual(["root"]);
    expect(readdirSync(root)).toHaveLength(8);
    await store.close();
  });
});

describe("a real file system error", () => {
  test("for a read-only folder is a CheckpointSaveError with its cause", async () => {
    const root = newFolder();
    writeFileSync(join(root, "file"), "");
    const store = new FileStore({ root: join(root, "file/below") });
    const error = await store.save(State.create({})).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CheckpointSaveError);
    expect(error).toMatchObject({ code: "CHECKPOINT_SAVE", cause: { code: "ENOTDIR" } });
  });

  test("for a root removed during a run is a conflict, and leaves no half-made root", async () => {
    const root = newFolder();
    const store = new FileStore({ root });
    const state = await store.save(State.create<Count>({ n: 1 }));
    rmSync(root, { recursive: true });
    await expect(store.save(state)).rejects.toMatchObject({ code: "CHECKPOINT_CONFLICT" });
    expect(existsSync(root)).toBe(false);
  });
});

test("a root may be a link to a folder", async () => {
  const link = join(newFolder(), "link");
  symlinkSync(newFolder(), link);
  const store = new FileStore({ root: link });
  await saveTimes(store, 2);
  const claim = await store.claim("run");
  expect([await store.list(), (await store.runs()).length]).toEqual([["run"], 1]);
  expect((await store.load<Count>("run")).data.n).toBe(2);
  await claim?.release();
  await store.delete("run");
  expect(await store.list()).toEqual([]);
  await store.close();
});

test("a file in place of the root is refused by name", async () => {
  const root = join(newFolder(), "file");
  writeFileSync(root, "");
  await expect(new FileStore({ root }).list()).rejects.toThrow(
    `${root} must be a folder; found a file`,
  );
});
