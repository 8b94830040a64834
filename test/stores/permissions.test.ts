import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type CheckpointStore, State } from "waymark";
import { FileStore } from "waymark/stores/file";
import { PostgresStore } from "waymark/stores/postgres";
import { SqliteStore } from "waymark/stores/sqlite";
import { newFolder } from "./folders.js";

const before = process.umask();
afterEach(() => process.umask(before));

/** What others can get at under a folder. A folder that they can't get into hides what is in it. */
function open(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const mode = statSync(path).mode & 0o777;
    if ((mode & 0o077) === 0) return [];
    return [`${entry.name} ${mode.toString(8)}`, ...(entry.isDirectory() ? open(path) : [])];
  });
}

const stores: readonly [
  kind: string,
  umasks: number[],
  make: (folder: string) => CheckpointStore,
][] = [
  ["file", [0, 0o022], (folder) => new FileStore({ root: join(folder, "a/b") })],
  ["sqlite", [0, 0o022], (folder) => new SqliteStore({ path: join(folder, "a/b/waymark.db") })],
  ["pglite", [0], (folder) => new PostgresStore({ client: `pglite:${folder}/a/b` })],
];

test.runIf(process.platform !== "win32").each(stores)(
  "what a store of kind %s writes is its owner's alone, whatever the umask",
  { timeout: 60_000 },
  async (_kind, umasks, make) => {
    for (const umask of umasks) {
      const folder = newFolder();
      process.umask(umask);
      const store = make(folder);
      await store.save(State.create({ n: 1 }, { runId: "run" }));
      expect(open(folder)).toEqual([]);
      await store.close?.();
    }
  },
);
