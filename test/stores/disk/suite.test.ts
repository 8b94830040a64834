import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, test } from "vitest";
import type { CheckpointStore } from "waymark";
import type { CodecOptions } from "waymark/codecs";
import { FileStore, type FileStoreOptions } from "waymark/stores/file";
import { testCheckpointStore } from "waymark/testing";
import { CrashDisk, withoutLinks } from "../../../src/testing/crash-file-system.js";

const folder = mkdtempSync(join(tmpdir(), "waymark-file-suite-"));
let stores = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function suite(name: string, options: FileStoreOptions): void {
  testCheckpointStore({
    name,
    create: () => new FileStore({ ...options, root: join(folder, String(++stores)) }),
    reopen: (store: CheckpointStore) =>
      new FileStore({ ...options, root: store instanceof FileStore ? store.root : "" }),
    test,
  });
}

suite("FileStore", {});
suite("FileStore, os", { durability: "os" });

// Also what is too small to be worth it.
const threshold = 0;
const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };
const codecs: Readonly<Record<string, CodecOptions>> = {
  gzip: { compress: { algorithm: "gzip", threshold } },
  brotli: { compress: { algorithm: "brotli", threshold } },
  encrypted: { encrypt },
  "brotli and encrypted": { compress: { algorithm: "brotli", threshold }, encrypt },
};
for (const [name, codec] of Object.entries(codecs)) {
  suite(`FileStore, ${name}`, { codec, durability: "os" });
}

// In memory, on a disk where a file can't have two names.
const disks = new Map<CheckpointStore, CrashDisk>();

function openWithoutLinks(disk: CrashDisk): FileStore {
  const store = new FileStore({ root: "/w" }, disk.mount(withoutLinks, true));
  disks.set(store, disk);
  return store;
}

testCheckpointStore({
  name: "FileStore, without links",
  create: () => openWithoutLinks(new CrashDisk()),
  reopen: (store) => openWithoutLinks(disks.get(store) ?? new CrashDisk()),
  test,
});
