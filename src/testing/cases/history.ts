import assert from "node:assert/strict";
import type { StateJSON } from "../../state/json.js";
import { State } from "../../state/state.js";
import {
  type Case,
  insideNode,
  lastOf,
  type Notes,
  refuses,
  saveSteps,
  stepAfter,
} from "./case.js";

const insideOne = (from: State<Notes>): State<Notes> => insideNode(from, 1);

/** Ids, steps and the order of checkpoints. */
export const history: readonly Case[] = [
  [
    "checkpoints have different ids and a growing sequence",
    async (store) => {
      const saved = await saveSteps(store, 4);
      assert.equal(new Set(saved.map((state) => state.checkpointId)).size, 4);
      assert.deepEqual(
        saved.map((state) => state.sequence),
        [1, 2, 3, 4],
      );
    },
  ],
  [
    "load finds a kept checkpoint by step and by id",
    async (store) => {
      const saved = await saveSteps(store, 3, "run");
      for (const state of saved) {
        const { step, checkpointId } = state;
        assert.deepEqual((await store.load<Notes>("run", { step })).toJSON(), state.toJSON());
        assert.deepEqual(
          (await store.load<Notes>("run", { checkpointId })).toJSON(),
          state.toJSON(),
        );
      }
    },
  ],
  [
    "load by step gives the newest checkpoint of that step",
    async (store) => {
      const [saved] = await saveSteps(store, 1, "run");
      assert.ok(saved);
      const again = await store.save(saved.set("topic", "again"));
      assert.equal((await store.load("run", { step: 1 })).checkpointId, again.checkpointId);
      const inside = await store.save(insideNode(again, 1));
      assert.equal((await store.load("run", { step: 1 })).checkpointId, inside.checkpointId);
    },
  ],
  [
    "load of a step or id that is not there is CHECKPOINT_NOT_FOUND",
    async (store) => {
      await saveSteps(store, 2, "run");
      await refuses(() => store.load("run", { step: 9 }), "CHECKPOINT_NOT_FOUND");
      await refuses(
        () => store.load("run", { checkpointId: "no such id" }),
        "CHECKPOINT_NOT_FOUND",
      );
      await refuses(() => store.load("run", { step: -1 }), "CONFIG");
    },
  ],
  [
    "history is newest first, with all its fields",
    async (store) => {
      if (store.history === undefined) return;
      const saved = await saveSteps(store, 2, "run");
      for (const next of [(from: State<Notes>) => stepAfter(from, "draft"), insideOne]) {
        saved.push(await store.save(next(lastOf(saved))));
      }
      const entries = await store.history("run");
      assert.deepEqual(
        entries.map(({ bytes: _bytes, ...entry }) => entry),
        saved
          .map((state, index) => ({
            sequence: state.sequence,
            step: state.step,
            node: state.checkpointNode,
            phase: state.phase,
            status: state.status,
            timestamp: state.timestamp,
            savedAt: state.savedAt,
            checkpointId: state.checkpointId,
            parentId: saved[index - 1]?.checkpointId ?? "",
            reason: state.reason,
            unfinished: index === 3,
            metadata: state.metadata,
          }))
          .reverse(),
      );
      for (const { bytes } of entries) assert.ok(bytes === undefined || bytes > 0);
    },
  ],
  [
    "a progress save gives back what its node had done",
    async (store) => {
      const first = lastOf(await saveSteps(store, 1, "run"));
      const saved = await store.save(insideNode(first, 3));
      const loaded = await store.load<Notes>("run");
      assert.deepEqual(loaded.toJSON(), saved.toJSON());
      assert.deepEqual(loaded.toJSON().unfinished, {
        node: "node-2",
        results: { "item-0": 0, "item-1": 1, "item-2": 2 },
        count: 3,
      });
    },
  ],
  [
    "find gives the run that a checkpoint belongs to",
    async (store) => {
      if (store.find === undefined) return;
      const [first, second] = await saveSteps(store, 2, "one");
      const [other] = await saveSteps(store, 1, "two");
      assert.ok(first && second && other);
      assert.equal(await store.find(first.checkpointId), "one");
      assert.equal(await store.find(second.checkpointId), "one");
      assert.equal(await store.find(other.checkpointId), "two");
      assert.equal(await store.find("no such id"), undefined);
      await store.delete("one");
      assert.equal(await store.find(second.checkpointId), undefined);
      await refuses(async () => store.find?.(7 as unknown as string), "CONFIG");
    },
  ],
  [
    "history of an unknown run is empty",
    async (store) => assert.deepEqual((await store.history?.("unknown")) ?? [], []),
  ],
];

/** A new run out of an old one. */
export const forks: readonly Case[] = [
  [
    "a run forked from another's checkpoint keeps its parent and leaves the original alone",
    async (store) => {
      const [first, second] = await saveSteps(store, 2, "original");
      assert.ok(first && second);
      const parent = { runId: "original", checkpointId: first.checkpointId };
      const json: StateJSON = {
        ...first.set("topic", "fork").toJSON(),
        runId: "fork",
        sequence: 0,
        parent,
      };
      const fork = await store.save(State.fromJSON<Notes>(json));
      assert.equal(fork.sequence, 1);
      assert.notEqual(fork.checkpointId, first.checkpointId);
      const loaded = await store.load<Notes>("fork");
      assert.deepEqual(loaded.parent, parent);
      assert.equal(loaded.data.topic, "fork");
      assert.deepEqual((await store.load<Notes>("original")).toJSON(), second.toJSON());
      const entries = await store.history?.("fork");
      assert.equal(entries?.[0]?.parentId ?? first.checkpointId, first.checkpointId);
    },
  ],
];
