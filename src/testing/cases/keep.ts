import assert from "node:assert/strict";
import type { CheckpointStore } from "../../checkpoint/store.js";
import {
  type Case,
  eventually,
  lastOf,
  notes,
  refuses,
  saveProgress,
  saveSteps,
  stepAfter,
} from "./case.js";

/** Checks which steps of run `run` are kept, newest first, where the store can say; a progress save has a `+`. */
function keeps(store: CheckpointStore, ...steps: readonly string[]): Promise<void> {
  return eventually(async () => {
    if (store.history === undefined) return;
    const entries = await store.history("run");
    assert.deepEqual(
      entries.map(({ step, unfinished }) => `${step}${unfinished ? "+" : ""}`),
      steps,
    );
  });
}

/** How much of a run stays. */
export const keep: readonly Case[] = [
  [
    "only the newest steps are kept, five by default",
    async (store) => {
      await saveSteps(store, 9, "run");
      await store.close?.();
      const entries = await store.history?.("run");
      assert.deepEqual(entries?.map((entry) => entry.sequence) ?? [9, 8, 7, 6, 5], [9, 8, 7, 6, 5]);
      await refuses(() => store.load("run", { step: 4 }), "CHECKPOINT_NOT_FOUND");
      assert.equal((await store.load("run")).sequence, 9);
    },
  ],
  [
    "a save can say how many steps to keep",
    async (store) => {
      await saveSteps(store, 6, "run", { keep: 3 });
      await keeps(store, "6", "5", "4");
    },
  ],
  [
    "of a step that is saved more than once, the newest checkpoint stays",
    async (store) => {
      const saved = await saveSteps(store, 3, "run");
      let state = lastOf(saved);
      for (let times = 0; times < 8; times++) state = await store.save(state);
      await keeps(store, "3", "2", "1");
      assert.equal((await store.load("run", { step: 3 })).sequence, 11);
    },
  ],
  ...[10, 100].map(
    (saves): Case => [
      `${saves} progress saves never push a step out`,
      async (store) => {
        const saved = await saveSteps(store, 6, "run");
        const inside = await saveProgress(store, lastOf(saved), saves);
        await keeps(store, "6+", "6", "5", "4", "3", "2");
        assert.equal((await store.load("run")).toJSON().unfinished?.count, saves);
        await store.save(stepAfter(inside));
        await keeps(store, "7", "6", "5", "4", "3");
      },
    ],
  ),
  [
    "the newest steps of each phase are kept beside the newest of all, if a save says so",
    async (store) => {
      let state = notes("run");
      for (const phase of ["plan", "plan", "write", "write", "", "check", "check"]) {
        state = await store.save(stepAfter(state, phase), { keep: 2, keepPerPhase: 1 });
      }
      await keeps(store, "7", "6", "4", "2");
    },
  ],
];
