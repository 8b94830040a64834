import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemCode } from "../../../src/errors.js";
import { ignoring, together } from "../../../src/stores/disk/file-system.js";
import { NodeFileSystem } from "../../../src/stores/disk/node-file-system.js";
import { newFolder } from "../folders.js";

const fs = new NodeFileSystem();

const codeFrom = (action: Promise<unknown>): Promise<string> => action.then(() => "", systemCode);

test("creates, writes and reads new files", async () => {
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

test("does not follow a symbolic link", async () => {
  const folder = newFolder();
  writeFileSync(join(folder, "file"), "text");
  symlinkSync(join(folder, "file"), join(folder, "link"));
  expect(await codeFrom(fs.open(join(folder, "link")))).toBe("ELOOP");
  expect((await fs.lstat(join(folder, "link"))).kind).toBe("other");
  expect((await fs.lstat(folder)).kind).toBe("folder");
});

test("recognizes a file by its id, whatever its name", async () => {
  const folder = newFolder();
  const [one, two, three] = ["one", "two", "three"].map((name) => join(folder, name));
  writeFileSync(one ?? "", "1");
  writeFileSync(three ?? "", "3");
  await fs.link(one ?? "", two ?? "");
  expect(await fs.idOf(one ?? "")).toBe(await fs.idOf(two ?? ""));
  expect(await fs.idOf(one ?? "")).not.toBe(await fs.idOf(three ?? ""));
  expect(await fs.idOf(join(folder, "none"))).toBeUndefined();
});

test("reads the heads of files, and nothing for what is not a file", async () => {
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

test("reads many heads without blocking", async () => {
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

test("distinguishes living processes from dead ones", () => {
  const dead = execFileSync(process.execPath, ["-p", "process.pid"], { encoding: "utf8" }).trim();
  const [pid, thread, started, place] = fs.owner.split("-");
  expect(fs.processes.isLiving(fs.owner)).toBe(true);
  expect(fs.processes.isLiving(new NodeFileSystem().owner)).toBe(true);
  expect(fs.processes.isLiving(`${dead}-${dead}-${started}-${place}-00000000`)).toBe(false);
  // Another that had our own number is not us.
  if (process.platform === "linux") {
    expect(fs.processes.isLiving(`${pid}-${thread}-${Number(started) - 1}-${place}-00000000`)).toBe(
      false,
    );
  }
  // Whoever is elsewhere can't be asked.
  expect(fs.processes.isLiving(`${dead}-${dead}-${started}-ffffffff-00000000`)).toBeUndefined();
});

test("a failing call waits for the concurrent ones", async () => {
  const done: string[] = [];
  const slow = new Promise((resolve) => setImmediate(resolve)).then(() => done.push("slow"));
  const failed = together([Promise.reject(new Error("first")), slow]);
  await expect(failed).rejects.toThrow("first");
  expect(done).toEqual(["slow"]);
  expect(await together([Promise.resolve(1), "two"])).toEqual([1, "two"]);
  await expect(ignoring(Promise.reject(new Error("other")), ["ENOENT"], 0)).rejects.toThrow(
    "other",
  );
});
