import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { State, type StateJSON } from "waymark";
import type { CodecOptions } from "waymark/codecs";
import { FileStore } from "waymark/stores/file";
import { SqliteStore } from "waymark/stores/sqlite";
import { articleGraph, type Golden, goldens, reading } from "./checkpoints.js";

/*
 * Checkpoints as they were written by each version of the format, committed. What was once written
 * must load for ever: a new version adds a folder, and no version changes one.
 *
 *   GOLDEN=write npx vitest run test/golden
 *
 * writes those that are missing from the current version's folder.
 */
const current = join(import.meta.dirname, "v1");
const versions = ["v1"];
const DATABASE = "waymark.db";
const work = mkdtempSync(join(tmpdir(), "waymark-golden-"));

afterAll(() => rmSync(work, { recursive: true, force: true }));

const open = (options: OpenOptions): FileStore => new FileStore(options);

interface OpenOptions {
  readonly root: string;
  readonly codec: CodecOptions;
}

/** A run of a golden folder, as it has to be found: the State of each step that was kept. */
interface Expected {
  readonly runId: string;
  readonly states: readonly StateJSON[];
}

async function write(golden: Golden): Promise<void> {
  const root = join(current, golden.name);
  if (existsSync(root)) return;
  mkdirSync(root, { recursive: true });
  const store = open({ root, codec: golden.codec ?? {} });
  await golden.write(store);
  await writeExpected(root, store);
}

/** The same checkpoints, those of all kinds in one database. */
async function writeDatabase(): Promise<void> {
  const path = join(current, DATABASE);
  if (existsSync(path)) return;
  for (const golden of goldens) {
    const store = new SqliteStore({ path, codec: golden.codec ?? {} });
    await golden.write(store);
    await store.close();
  }
  await writeExpected(path, new SqliteStore({ path, codec: reading, readOnly: true }));
}

async function writeExpected(golden: string, store: FileStore | SqliteStore): Promise<void> {
  const expected: Expected[] = [];
  for (const runId of await store.list()) {
    const entries = await store.history(runId);
    const states = await Promise.all(
      entries.map(async ({ checkpointId }) => (await store.load(runId, { checkpointId })).toJSON()),
    );
    expected.push({ runId, states });
  }
  await store.close();
  writeFileSync(`${golden}.expected.json`, `${JSON.stringify(expected, null, 1)}\n`);
}

/** Finds in a store all that it has to have, and nothing else. */
async function expectAll(golden: string, store: FileStore | SqliteStore): Promise<void> {
  const expected: Expected[] = JSON.parse(readFileSync(`${golden}.expected.json`, "utf8"));
  expect((await store.list()).sort()).toEqual(expected.map(({ runId }) => runId).sort());
  expect((await store.runs()).length).toBe(expected.length);
  for (const { runId, states } of expected) {
    const entries = await store.history(runId);
    expect(entries.map(({ checkpointId }) => checkpointId)).toEqual(
      states.map(({ checkpointId }) => checkpointId),
    );
    for (const state of states) {
      const loaded = await store.load(runId, { checkpointId: state.checkpointId });
      // A later version may say more of a State, never less or another thing.
      expect(loaded.toJSON()).toMatchObject(state);
      expect(State.fromJSON(state).toJSON()).toEqual(loaded.toJSON());
    }
    expect((await store.load(runId)).sequence).toBe(states[0]?.sequence);
  }
}

if (process.env.GOLDEN === "write") {
  for (const golden of goldens) await write(golden);
  await writeDatabase();
}

describe.each(versions)("checkpoints of format %s", (version) => {
  test.each(goldens.map(({ name }) => name))(
    "%s: load as what they were saved as",
    async (name) => {
      const golden = join(import.meta.dirname, version, name);
      const root = join(work, version, name);
      cpSync(golden, root, { recursive: true });
      await expectAll(golden, open({ root, codec: reading }));
    },
  );

  test("a SQLite database: all load as what they were saved as", async () => {
    const golden = join(import.meta.dirname, version, DATABASE);
    const path = join(work, version, DATABASE);
    mkdirSync(join(work, version), { recursive: true });
    cpSync(golden, path);
    // Also where nothing can be written, as on a read-only disk.
    for (const readOnly of [true, false]) {
      const store = new SqliteStore({ path, codec: reading, readOnly });
      await expectAll(golden, store);
      for await (const finding of store.verify()) expect(finding).toBeUndefined();
      await store.close();
    }
    const store = new SqliteStore({ path, codec: reading });
    const final = await articleGraph(store).resume("failed");
    expect([final.checkpointNode, final.step, final.status]).toEqual(["publish", 4, "completed"]);
    await store.close();
  });

  test("runs continue where they were left", async () => {
    const root = join(work, version, "going on");
    cpSync(join(import.meta.dirname, version, "failed"), root, { recursive: true });
    const graph = articleGraph(open({ root, codec: reading }));
    const final = await graph.resume("failed");
    expect(final.data.drafts).toEqual(["draft 1", "draft 2"]);
    expect([final.checkpointNode, final.step, final.status]).toEqual(["publish", 4, "completed"]);
  });
});
