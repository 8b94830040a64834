import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { FileStore } from "waymark/stores/file";
import { NodeFileSystem } from "../../../src/stores/disk/node-file-system.js";
import { newFolder } from "../folders.js";

/** So long without a heartbeat, and other processes may remove the claim. */
const SILENCE = 3000;

/** A file system whose listings of the claims a test delays, and on which it forbids new files. */
class ControlledFileSystem extends NodeFileSystem {
  onListed = (): void => {};
  isFull = false;

  override readonly create = (path: string): Promise<number> => {
    if (this.isFull) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
    return createFile(path);
  };

  override async readdir(path: string): Promise<string[]> {
    const names = await super.readdir(path);
    if (path.endsWith(".claims")) this.onListed();
    return names;
  }
}

const { create: createFile } = new NodeFileSystem();

/** Two claims, and a function that removes the first as another process would. */
async function claimTwo() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const root = newFolder();
  const fs = new ControlledFileSystem();
  const store = new FileStore({ root }, fs);
  const [lost, kept] = [await store.claim("run"), await store.claim("other")];
  const folder = join(root, ".claims");
  const name = readdirSync(folder).find((one) => one.startsWith("run@")) ?? "none";
  return { root, fs, lost, kept, remove: () => rmSync(join(folder, name)) };
}

const beSilent = () => vi.setSystemTime(Date.now() + SILENCE);

afterEach(() => vi.useRealTimers());

test("a claim is checked again if the answer took so long that it may be outdated", async () => {
  const { root, fs, lost, kept, remove } = await claimTwo();
  fs.onListed = () => {
    fs.onListed = () => {};
    beSilent();
    remove();
  };
  beSilent();
  expect(await lost?.holds?.()).toBe(false);
  expect(lost?.lost?.reason).toEqual(
    new Error("the claim on the run is lost: another process has removed it"),
  );
  expect(await kept?.holds?.()).toBe(true);
  for (const claim of [lost, kept]) await claim?.release();
  expect(readdirSync(root)).toEqual([]);
});

test("without room for a heartbeat, a claim is held until another process removes it", async () => {
  const { fs, lost, kept, remove } = await claimTwo();
  fs.isFull = true;
  beSilent();
  // Others can't see that this process lives, so it asks each time.
  for (let asked = 0; asked < 2; asked++) {
    const answers = [lost?.holds?.(), kept?.holds?.()];
    expect(answers).toEqual([expect.any(Promise), expect.any(Promise)]);
    expect(await Promise.all(answers)).toEqual([true, true]);
  }
  remove();
  expect(await Promise.all([lost?.holds?.(), kept?.holds?.()])).toEqual([false, true]);
  fs.isFull = false;
  expect(await kept?.holds?.()).toBe(true);
  expect(kept?.holds?.()).toBe(true);
  for (const claim of [lost, kept]) await claim?.release();
});
