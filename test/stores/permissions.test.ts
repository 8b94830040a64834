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

/** What is under a folder, by its mode, where that lets others do anything with it. */
function open(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).flatMap((name) => {
    const mode = statSync(join(folder, name)).mode & 0o777;
    return (mode & 0o077) === 0 ? [] : [`${mode.toString(8)} ${name}`];
  });
}

const stores: readonly [kind: string, make: (folder: string) => CheckpointStore][] = [
  ["file", (folder) => new FileStore({ root: join(folder, "a/b") })],
  ["sqlite", (folder) => new SqliteStore({ path: join(folder, "a/b/waymark.db") })],
  ["pglite", (folder) => new PostgresStore({ client: `pglite:${folder}/a/b` })],
];

test.runIf(process.platform !== "win32").each(stores)(
  "a store of kind %s writes files only its owner can read, whatever the umask",
  async (_kind, make) => {
    for (const umask of [0, 0o022]) {
      const folder = newFolder();
      process.umask(umask);
      for (const runId of ["one", "another, after the store was closed"]) {
        const store = make(folder);
        await store.save(State.create({ n: 1 }, { runId }));
        expect(open(folder)).toEqual([]);
        await store.close?.();
        expect(open(folder)).toEqual([]);
      }
    }
  },
);
