import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, test } from "vitest";
import type { CheckpointStore } from "waymark";
import { JournalStore, type JournalStoreOptions } from "waymark/stores/journal";
import { testCheckpointStore } from "waymark/testing";

const folder = mkdtempSync(join(tmpdir(), "waymark-journal-suite-"));
let stores = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function suite(name: string, options: JournalStoreOptions): void {
  testCheckpointStore({
    name,
    create: () => new JournalStore({ ...options, root: join(folder, String(++stores)) }),
    reopen: (store: CheckpointStore) =>
      new JournalStore({ ...options, root: store instanceof JournalStore ? store.root : "" }),
    test,
  });
}

suite("JournalStore", {});
// Every few saves the log is compacted, whatever else is going on.
suite("JournalStore, compacting", { logBytes: 1, durability: "os" });
suite("JournalStore, flushed later", { durability: { flushEvery: 1 }, snapshotEvery: 2 });

// Also what is too small to be worth it.
const compress = { algorithm: "brotli", threshold: 0 } as const;
const encrypt = { keys: { k1: new Uint8Array(32) }, current: "k1" };
suite("JournalStore, compressed", { codec: { compress }, durability: "os" });
suite("JournalStore, encrypted", { codec: { encrypt }, durability: "os" });
suite("JournalStore, both", { codec: { compress, encrypt }, durability: "os" });
