import { expect, test } from "vitest";
import { CrashDisk } from "../../src/testing/crash-file-system.js";

test("the simulated disk refuses what a real one refuses", async () => {
  const disk = new CrashDisk();
  const fs = disk.mount();
  await fs.mkdir("/folder");
  await fs.mkdir("/folder/inner");
  const file = await fs.create("/folder/file");
  const folder = (await fs.openFolder("/folder")) ?? 0;
  await fs.close(await fs.create("/folder/spare"));
  for (const [code, action] of [
    ["ENOENT", () => fs.open("/none")],
    ["ENOENT", () => fs.lstat("/folder/none")],
    ["ENOTDIR", () => fs.lstat("/folder/file/below")],
    ["ENOTDIR", () => fs.create("/folder/file/below")],
    ["ENOTDIR", () => fs.readdir("/folder/file")],
    ["ENOTDIR", () => fs.rmdir("/folder/file")],
    ["EEXIST", () => fs.create("/folder/file")],
    ["EISDIR", () => fs.unlink("/folder/inner")],
    ["EISDIR", () => fs.write(folder, new Uint8Array(1))],
    ["EISDIR", () => fs.read(folder, 1)],
    ["ENOTEMPTY", () => fs.rmdir("/folder")],
    ["EBADF", () => fs.stat(9999)],
  ] as const) {
    await expect(action(), code).rejects.toMatchObject({ code });
  }
  expect(() => disk.tamper("/folder", (bytes) => bytes)).toThrow(/EISDIR/);
  expect(() => disk.find("/folder/file/below")).toThrow(/ENOTDIR/);
  await fs.close(file);
});
