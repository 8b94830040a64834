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
  const expected: Expected[] = [];
  for (const runId of await store.list()) {
    const entries = await store.history(runId);
    const states = await Promise.all(
      entries.map(async ({ checkpointId }) => (await store.load(runId, { checkpointId })).toJSON()),
    );
    expected.push({ runId, states });
  }
  await store.close();
  writeFileSync(`${root}.expected.json`, `${JSON.stringify(expected, null, 1)}\n`);
}

if (process.env.GOLDEN === "write") {
  for (const golden of goldens) await write(golden);
}

describe.each(versions)("checkpoints of format %s", (version) => {
  test.each(goldens.map(({ name }) => name))(
    "%s: load as what they were saved as",
    async (name) => {
      const golden = join(import.meta.dirname, version, name);
      const root = join(work, version, name);
      cpSync(golden, root, { recursive: true });
      const store = open({ root, codec: reading });
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
        expect((await open({ root, codec: reading }).load(runId)).sequence).toBe(
          states[0]?.sequence,
        );
      }
    },
  );

  test("runs continue where they were left", async () => {
    const root = join(work, version, "going on");
    cpSync(join(import.meta.dirname, version, "failed"), root, { recursive: true });
    const graph = articleGraph(open({ root, codec: reading }));
    const final = await graph.resume("failed");
    expect(final.data.drafts).toEqual(["draft 1", "draft 2"]);
    expect([final.checkpointNode, final.step, final.status]).toEqual(["publish", 4, "completed"]);
  });
});
