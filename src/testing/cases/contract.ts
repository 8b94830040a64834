import assert from "node:assert/strict";
import { State } from "../../state/state.js";
import { type Case, content, type Notes, notes, refuses, saveSteps } from "./case.js";

/** Save, load, delete, list. */
export const contract: readonly Case[] = [
  [
    "save gives the State back with its id and a sequence of 1",
    async (store) => {
      const state = notes();
      const saved = await store.save(state);
      assert.notEqual(saved.checkpointId, "");
      assert.equal(saved.sequence, 1);
      assert.equal(new Date(saved.savedAt).toISOString(), saved.savedAt);
      assert.deepEqual([state.checkpointId, state.savedAt], ["", ""]);
      assert.deepEqual(content(saved), content(state));
    },
  ],
  [
    "load gives the same identity, node, metadata and data",
    async (store) => {
      const metadata = { team: "docs", priority: 2, urgent: true };
      const state = State.create<Notes>({ topic: "cairns", list: [1, 2] }, { metadata });
      const saved = await store.save(state.setCheckpointNode("draft"));
      const loaded = await store.load<Notes>(state.runId);
      assert.deepEqual(loaded.toJSON(), saved.toJSON());
      assert.deepEqual(loaded.metadata, metadata);
    },
  ],
  [
    "a later save is what load gives",
    async (store) => {
      const first = await store.save(notes());
      await store.save(first.set("topic", "marks"));
      assert.equal((await store.load<Notes>(first.runId)).data.topic, "marks");
    },
  ],
  [
    "load of an unknown run is CHECKPOINT_NOT_FOUND",
    (store) => refuses(() => store.load("unknown"), "CHECKPOINT_NOT_FOUND"),
  ],
  [
    "delete removes a run",
    async (store) => {
      const { runId } = await store.save(notes());
      await store.delete(runId);
      await refuses(() => store.load(runId), "CHECKPOINT_NOT_FOUND");
      assert.deepEqual(await store.list(), []);
    },
  ],
  ["delete of an absent run is fine", (store) => store.delete("absent")],
  [
    "a deleted run can start again",
    async (store) => {
      const first = await store.save(notes("again"));
      await store.delete(first.runId);
      assert.equal((await store.save(notes("again"))).sequence, 1);
    },
  ],
  [
    "list gives every run once",
    async (store) => {
      assert.deepEqual(await store.list(), []);
      await saveSteps(store, 3, "one");
      await saveSteps(store, 1, "two");
      assert.deepEqual((await store.list()).sort(), ["one", "two"]);
    },
  ],
  [
    "what is not a State is refused",
    (store) => refuses(() => store.save({ runId: "x" } as unknown as State<Notes>), "CONFIG"),
  ],
];
