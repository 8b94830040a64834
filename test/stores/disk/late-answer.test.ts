import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { FileStore } from "waymark/stores/file";
import { NodeFileSystem } from "../../../src/stores/disk/node-file-system.js";
import { newFolder } from "../folders.js";

/** So long without a heartbeat, and other processes may remove the claim. */
const SILENCE = 3000;

/** A file system on which listing the claims once takes so long that others remove them meanwhile. */
class SlowFileSystem extends NodeFileSystem {
  onListed: (() => void) | undefined;

  override async readdir(path: string): Promise<string[]> {
    const names = await super.readdir(path);
    const onListed = path.endsWith(".claims") ? this.onListed : undefined;
    if (onListed !== undefined) this.onListed = undefined;
    onListed?.();
    return names;
  }
}

afterEach(() => vi.useRealTimers());

test("a claim is checked again if the answer took so long that it may be outdated", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const root = newFolder();
  const fs = new SlowFileSystem();
  const store = new FileStore({ root }, fs);
  const [lost, kept] = [await store.claim("run"), await store.claim("other")];
  const name = readdirSync(join(root, ".claims")).find((one) => one.startsWith("run@")) ?? "none";
  fs.onListed = () => {
    vi.setSystemTime(Date.now() + SILENCE);
    rmSync(join(root, ".claims", name));
  };
  vi.setSystemTime(Date.now() + SILENCE);
  expect(await lost?.holds?.()).toBe(false);
  expect(lost?.lost?.reason).toEqual(
    new Error("the claim on the run is lost: another process has removed it"),
  );
  expect(await kept?.holds?.()).toBe(true);
  for (const claim of [lost, kept]) await claim?.release();
  expect(readdirSync(root)).toEqual([]);
});
