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
import { FileStore } from "waymark/stores/file";
import { articleGraph, goldens, reading } from "./checkpoints.js";

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

/** A run of a golden folder, as it has to be found: the State of each step that was kept. */
interface Expected {
  readonly runId: string;
  readonly states: readonly StateJSON[];
}

if (process.env.GOLDEN === "write") {
  for (const { name, codec = {}, write } of goldens) {
    const root = join(current, name);
    if (existsSync(root)) continue;
    mkdirSync(root, { recursive: true });
    const store = new FileStore({ root, codec });
    await write(store);
    await store.close();
    const expected: Expected[] = [];
    for (const runId of await store.list()) {
      const entries = await store.history(runId);
      const states = await Promise.all(
        entries.map(async ({ checkpointId }) =>
          (await store.load(runId, { checkpointId })).toJSON(),
        ),
      );
      expected.push({ runId, states });
    }
    writeFileSync(join(current, `${name}.expected.json`), `${JSON.stringify(expected, null, 1)}\n`);
  }
}

describe.each(versions)("checkpoints of format %s", (version) => {
  test.each(goldens.map(({ name }) => name))(
    "%s: load as what they were saved as",
    async (name) => {
      const root = join(work, version, name);
      cpSync(join(import.meta.dirname, version, name), root, { recursive: true });
      const store = new FileStore({ root, codec: reading });
      const text = readFileSync(
        join(import.meta.dirname, version, `${name}.expected.json`),
        "utf8",
      );
      const expected: Expected[] = JSON.parse(text);
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
    },
  );

  test("runs go on where they were left", async () => {
    const root = join(work, version, "going on");
    cpSync(join(import.meta.dirname, version, "failed"), root, { recursive: true });
    const graph = articleGraph(new FileStore({ root, codec: reading }));
    const final = await graph.resume("failed");
    expect(final.data.drafts).toEqual(["draft 1", "draft 2"]);
    expect([final.checkpointNode, final.step, final.status]).toEqual(["publish", 4, "completed"]);
  });
});
