import assert from "node:assert/strict";
import { State } from "../../state/state.js";
import {
  at,
  type Case,
  collect,
  insideNode,
  lastOf,
  type Notes,
  refuses,
  saveProgress,
  saveSteps,
  stepAfter,
} from "./case.js";

/** Moving a run from one store to another. */
export const moves: readonly Case[] = [
  [
    "a run that is exported and imported keeps its history, ids and sequences",
    async (store) => {
      if (store.export === undefined || store.import === undefined) return;
      await saveSteps(store, 8, "run");
      const entries = async () =>
        (await store.history?.("run"))?.map(({ bytes: _bytes, ...entry }) => entry);
      const before = await entries();
      const newest = await store.load<Notes>("run");
      const exported = await collect(store.export("run"));
      assert.deepEqual(
        exported.map(({ state }) => state.sequence),
        [4, 5, 6, 7, 8],
      );
      await refuses(async () => store.import?.(exported), "CHECKPOINT_CONFLICT");
      await store.delete("run");
      await store.import(exported);
      assert.deepEqual(await entries(), before);
      const moved = await store.load<Notes>("run");
      assert.deepEqual(moved.toJSON(), newest.toJSON());
      assert.equal((await store.save(moved)).sequence, 9);
    },
  ],
  [
    "a run that is exported and imported keeps when it was saved, its metadata and its progress saves",
    async (store) => {
      if (store.export === undefined || store.import === undefined) return;
      const metadata = { team: "docs", priority: 2 };
      const first = await at("2030-01-01T00:00:00.000Z", () =>
        store.save(stepAfter(State.create<Notes>({ topic: "t" }, { runId: "run", metadata }))),
      );
      const inside = await at("2030-01-02T00:00:00.000Z", () => store.save(insideNode(first, 2)));
      const listed = await store.runs?.();
      const exported = await collect(store.export("run"));
      await store.delete("run");
      await at("2031-01-01T00:00:00.000Z", async () => store.import?.(exported));
      const moved = await store.load<Notes>("run");
      assert.deepEqual(moved.toJSON(), inside.toJSON());
      assert.equal(moved.savedAt, "2030-01-02T00:00:00.000Z");
      assert.deepEqual(moved.metadata, metadata);
      assert.deepEqual(await store.runs?.(), listed);
      assert.equal((await store.find?.(inside.checkpointId)) ?? "run", "run");
    },
  ],
  [
    "export of an unknown run gives nothing",
    async (store) => {
      for await (const one of store.export?.("unknown") ?? []) assert.fail(String(one));
    },
  ],
];

/** Looking for damage. */
export const verify: readonly Case[] = [
  [
    "verify finds nothing wrong in a store that is whole, nor in an empty one",
    async (store) => {
      if (store.verify === undefined) return;
      assert.deepEqual(await collect(store.verify()), []);
      const saved = await saveSteps(store, 9, "run");
      await saveProgress(store, lastOf(saved), 12);
      await saveSteps(store, 1, "other");
      await saveSteps(store, 2, "gone");
      await store.delete("gone");
      assert.deepEqual(await collect(store.verify()), []);
      assert.deepEqual(await collect(store.verify("run")), []);
    },
  ],
];
