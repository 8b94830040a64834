import assert from "node:assert/strict";
import { isWaymarkError } from "../../errors.js";
import { State } from "../../state/state.js";
import { type Case, type Notes, notes, refuses, saveSteps } from "./case.js";

/** Two writers on one run. */
export const conflict: readonly Case[] = [
  [
    "of two States built on one checkpoint, the second to be saved is a conflict",
    async (store) => {
      const base = await store.save(notes());
      await store.save(base.set("topic", "mine"));
      await refuses(() => store.save(base.set("topic", "theirs")), "CHECKPOINT_CONFLICT");
      assert.equal((await store.load<Notes>(base.runId)).data.topic, "mine");
      assert.equal((await store.history?.(base.runId))?.[0]?.sequence ?? 2, 2);
    },
  ],
  [
    "a second new State with the id of a run that is there is a conflict",
    async (store) => {
      await store.save(notes("run"));
      await refuses(() => store.save(notes("run").set("topic", "other")), "CHECKPOINT_CONFLICT");
      assert.equal((await store.load<Notes>("run")).data.topic, "cairns");
    },
  ],
  [
    "a State of a run that was deleted meanwhile is a conflict",
    async (store) => {
      const saved = await store.save(notes());
      await store.delete(saved.runId);
      await refuses(() => store.save(saved), "CHECKPOINT_CONFLICT");
      assert.deepEqual(await store.list(), []);
    },
  ],
  [
    "of many saves at once on one checkpoint, exactly one wins",
    async (store) => {
      const base = await store.save(notes());
      const tries = Array.from({ length: 10 }, (_, index) => store.save(base.set("list", [index])));
      const outcomes = await Promise.allSettled(tries);
      const won = outcomes.flatMap((outcome, index) =>
        outcome.status === "fulfilled" ? [index] : [],
      );
      assert.equal(won.length, 1);
      for (const outcome of outcomes) {
        if (outcome.status === "rejected")
          assert.ok(isWaymarkError(outcome.reason, "CHECKPOINT_CONFLICT"));
      }
      assert.deepEqual((await store.load<Notes>(base.runId)).data.list, won);
    },
  ],
];

export const concurrency: readonly Case[] = [
  [
    "many runs at once don't disturb each other",
    async (store) => {
      const runIds = Array.from({ length: 20 }, (_, index) => `run-${index}`);
      await Promise.all(runIds.map((runId) => saveSteps(store, 5, runId)));
      for (const runId of runIds) {
        const loaded = await store.load<Notes>(runId);
        assert.deepEqual([loaded.sequence, loaded.data.list], [5, [5]]);
      }
      assert.equal((await store.list()).length, 20);
    },
  ],
  [
    "a load beside saves gives a whole checkpoint",
    async (store) => {
      await store.save(notes("run"));
      const saving = (async () => {
        for (let state = await store.load<Notes>("run"), count = 1; count <= 20; count++) {
          state = await store.save(
            state.set(
              "list",
              Array.from({ length: 100 }, () => count),
            ),
          );
        }
      })();
      for (let count = 0; count < 20; count++) {
        const { list } = (await store.load<Notes>("run")).data;
        assert.ok(list === undefined || (list.length === 100 && new Set(list).size === 1));
      }
      await saving;
    },
  ],
];

/** Nobody can write to what is kept. */
export const isolation: readonly Case[] = [
  [
    "nothing that is done to what was passed changes what is kept",
    async (store) => {
      const bytes = new Uint8Array([1, 2, 3]);
      const data = { topic: "cairns", any: { deep: [1], bytes } };
      const state = State.create<Notes>(data);
      await store.save(state);
      data.any.deep.push(2);
      bytes[0] = 9;
      const inside = (state.data.any as { bytes: Uint8Array }).bytes;
      inside[1] = 9;
      const kept = (await store.load<Notes>(state.runId)).data.any;
      assert.deepEqual(kept, { deep: [1], bytes: new Uint8Array([1, 2, 3]) });
    },
  ],
  [
    "nothing that is done to what was loaded changes what is kept",
    async (store) => {
      const { runId } = await store.save(
        State.create<Notes>({ topic: "cairns", any: new Uint8Array([1]) }),
      );
      const loaded = await store.load<Notes>(runId);
      (loaded.data.any as Uint8Array)[0] = 9;
      assert.throws(() => Object.assign(loaded.data, { topic: "changed" }), TypeError);
      assert.deepEqual((await store.load<Notes>(runId)).data, {
        topic: "cairns",
        any: new Uint8Array([1]),
      });
    },
  ],
];

/** What was saved outlives the store. */
export const durable: readonly Case[] = [
  [
    "what was saved is there when the store is opened again, and can be continued",
    async (store, reopen) => {
      if (reopen === undefined) return;
      const saved = await saveSteps(store, 3, "run");
      const again = await reopen(store);
      const loaded = await again.load<Notes>("run");
      assert.deepEqual(loaded.toJSON(), saved.at(-1)?.toJSON());
      assert.equal((await again.save(loaded)).sequence, 4);
      await refuses(() => store.save(loaded.set("topic", "stale")), "CHECKPOINT_CONFLICT");
      await again.close?.();
    },
  ],
];
