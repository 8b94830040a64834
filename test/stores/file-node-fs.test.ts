import { execFileSync } from "node:child_process";
import { constants, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { codeOf, together, unless } from "../../src/stores/file/file-system.js";
import { NodeFileSystem } from "../../src/stores/file/node-file-system.js";
import { SharedRead } from "../../src/stores/file/shared-read.js";
import { newFolder } from "./folders.js";

const fs = new NodeFileSystem();

const codeFrom = (action: Promise<unknown>): Promise<string> => action.then(() => "", codeOf);

test("creates files that must be new, and writes and reads all of them", async () => {
  const path = join(newFolder(), "file");
  const bytes = new Uint8Array(3_000_000).fill(7);
  const file = await fs.create(path);
  await fs.write(file, bytes);
  await fs.sync(file);
  expect(await fs.stat(file)).toMatchObject({ kind: "file", size: bytes.length });
  await fs.close(file);
  expect(await codeFrom(fs.create(path))).toBe("EEXIST");
  const opened = await fs.open(path);
  expect((await fs.read(opened, 10_000_000)).length).toBe(bytes.length);
  expect(await fs.read(opened, 2)).toEqual(Buffer.from([7, 7]));
  await fs.close(opened);
  expect(await codeFrom(fs.write(opened, bytes))).toBe("EBADF");
  expect(await codeFrom(fs.read(opened, 1))).toBe("EBADF");
});

test("appends whole lines and syncs them, also where no flag of the system does", async () => {
  const synced: number[] = [];
  class Flagless extends NodeFileSystem {
    protected override readonly synced = 0;
    override readonly syncData = async (file: number): Promise<void> => {
      synced.push(file);
    };
  }
  for (const [system, syncs] of [
    [fs, 0],
    [new Flagless(), 2],
  ] as const) {
    const path = join(newFolder(), "log");
    writeFileSync(path, "");
    const file = await system.openToAppend(path, true);
    for (const line of ["one\n", "two\n"]) await system.append(file, Buffer.from(line));
    await system.close(file);
    const plain = await system.openToAppend(path, false);
    await system.append(plain, Buffer.from("three\n"));
    await system.close(plain);
    expect(readFileSync(path, "utf8")).toBe("one\ntwo\nthree\n");
    expect(synced).toHaveLength(syncs);
  }
});

test.runIf(process.platform === "linux")("a file that is synced has the flag for it", async () => {
  const path = join(newFolder(), "log");
  writeFileSync(path, "");
  for (const isSynced of [true, false]) {
    const file = await fs.openToAppend(path, isSynced);
    const [, flags = "0"] =
      /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${file}`, "utf8")) ?? [];
    expect((Number.parseInt(flags, 8) & constants.O_DSYNC) !== 0).toBe(isSynced);
    await fs.close(file);
  }
});

test("does not follow a symbolic link", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "file"), "text");
  symlinkSync(join(folder, "file"), join(folder, "link"));
  expect(await codeFrom(fs.open(join(folder, "link")))).toBe("ELOOP");
  expect((await fs.lstat(join(folder, "link"))).kind).toBe("other");
  expect((await fs.lstat(folder)).kind).toBe("folder");
});

test("knows a file again by its id, whatever its name", async () => {
  const folder = newFolder();
  const [one, two, three] = ["one", "two", "three"].map((name) => join(folder, name));
  writeFileSync(one ?? "", "1");
  writeFileSync(three ?? "", "3");
  await fs.link(one ?? "", two ?? "");
  expect(await fs.idOf(one ?? "")).toBe(await fs.idOf(two ?? ""));
  expect(await fs.idOf(one ?? "")).not.toBe(await fs.idOf(three ?? ""));
  expect(await fs.idOf(join(folder, "none"))).toBeUndefined();
});

test("gives the heads of files, and none of what is no file", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "long"), "0123456789");
  writeFileSync(join(folder, "short"), "01");
  mkdirSync(join(folder, "folder"));
  symlinkSync(join(folder, "long"), join(folder, "link"));
  const names = ["long", "short", "folder", "link", "none"];
  const heads = await fs.heads(
    names.map((name) => join(folder, name)),
    4,
  );
  expect(heads.map((head) => head && [head.bytes.toString(), head.size])).toEqual([
    ["0123", 10],
    ["01", 2],
    undefined,
    undefined,
    undefined,
  ]);
  expect(await codeFrom(fs.heads([join(folder, "x".repeat(300))], 4))).toBe("ENAMETOOLONG");
});

test("reads many heads without holding everybody up", async () => {
  const folder = newFolder();
  const paths = Array.from({ length: 2000 }, (_, index) => join(folder, String(index)));
  for (const path of paths) writeFileSync(path, path);
  let turns = 0;
  const ticking = setInterval(() => turns++, 0);
  const heads = await fs.heads(paths, 10_000);
  clearInterval(ticking);
  expect(heads.map((head) => head?.bytes.toString())).toEqual(paths);
  expect(turns).toBeGreaterThan(0);
});

test("knows the living from the dead", () => {
  const dead = execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }).trim();
  const [pid, started, place] = fs.owner.split("-");
  expect(fs.isAlive(fs.owner)).toBe(true);
  expect(fs.isAlive(new NodeFileSystem().owner)).toBe(true);
  expect(fs.isAlive(`${dead}-${started}-${place}-00000000`)).toBe(false);
  // Another that had our own number is not us.
  if (process.platform === "linux") {
    expect(fs.isAlive(`${pid}-${Number(started) - 1}-${place}-00000000`)).toBe(false);
  }
  // Whoever is elsewhere can't be asked.
  expect(fs.isAlive(`${dead}-${started}-ffffffff-00000000`)).toBe(true);
});

test("a call that fails waits for those beside it", async () => {
  const done: string[] = [];
  const slow = new Promise((resolve) => setImmediate(resolve)).then(() => done.push("slow"));
  const failed = together([Promise.reject(new Error("first")), slow]);
  await expect(failed).rejects.toThrow("first");
  expect(done).toEqual(["slow"]);
  expect(await together([Promise.resolve(1), "two"])).toEqual([1, "two"]);
  await expect(unless(["ENOENT"], Promise.reject(new Error("other")), 0)).rejects.toThrow("other");
});

test("what is read for all who ask is never older than their asking", async () => {
  const begun: (() => void)[] = [];
  let reads = 0;
  const shared = new SharedRead(async () => {
    const number = ++reads;
    await new Promise<void>((resolve) => begun.push(resolve));
    if (number === 2) throw new Error("second");
    return number;
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const first = shared.get();
  await turn();
  const later = [shared.get(), shared.get()];
  await turn();
  expect(reads).toBe(1);
  begun[0]?.();
  expect(await first).toBe(1);
  await turn();
  begun[1]?.();
  expect((await Promise.allSettled(later)).map(({ status }) => status)).toEqual([
    "rejected",
    "rejected",
  ]);
  const last = shared.get();
  await turn();
  begun[2]?.();
  expect(await last).toBe(3);
});
