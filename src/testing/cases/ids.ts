import assert from "node:assert/strict";
import { type Case, type Notes, notes, refuses } from "./case.js";

/** A run id is data, never a path. */
export const ids: readonly Case[] = [
  "../outside",
  "/absolute",
  "..",
  ".",
  "CON",
  "a/b\\c",
  'a:b*?"<>|',
  "ends with a dot.",
  " spaces ",
  "%2e%2e",
  "ÅÄÖ 山 🏔️",
  "x".repeat(200),
  "-rf",
  "~",
  "$HOME",
  "'; DROP TABLE runs; --",
  "\ufeffmarked",
].map(
  (runId): Case => [
    `the run id ${JSON.stringify(runId.length > 30 ? `${runId.slice(0, 5)}… of ${runId.length}` : runId)} is only a name`,
    async (store) => {
      const saved = await store.save(notes(runId));
      assert.equal((await store.load<Notes>(runId)).runId, runId);
      assert.deepEqual(await store.list(), [runId]);
      assert.equal((await store.save(saved.set("topic", "marks"))).sequence, 2);
      await store.delete(runId);
      assert.deepEqual(await store.list(), []);
    },
  ],
);

export const badIds: readonly Case[] = ["", "nul\0", "line\nbreak", "x".repeat(300)].map(
  (runId): Case => [
    `the run id ${JSON.stringify(runId.slice(0, 12))} of ${runId.length} characters is refused`,
    async (store) => {
      await refuses(() => store.load(runId), "CONFIG");
      await refuses(() => store.delete(runId), "CONFIG");
    },
  ],
);

export const similarIds: readonly Case[] = [
  [
    "run ids that look alike are different runs",
    async (store) => {
      const alike = ["run", "Run", "RUN", "run.", "run ", "r%75n", "run/", "é", "e\u0301"];
      alike.push("\ufeffrun");
      for (const runId of alike) await store.save(notes(runId).set("topic", runId));
      for (const runId of alike) assert.equal((await store.load<Notes>(runId)).data.topic, runId);
      assert.deepEqual((await store.list()).sort(), [...alike].sort());
      const listed = (await store.runs?.())?.map((run) => run.runId) ?? alike;
      assert.deepEqual(listed.sort(), [...alike].sort());
      await (await store.claim?.("\ufeffrun"))?.release();
      await store.delete("\ufeffrun");
      assert.equal((await store.load<Notes>("run")).data.topic, "run");
    },
  ],
];
