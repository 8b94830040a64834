import assert from "node:assert/strict";
import type { ExportedCheckpoint } from "../../checkpoint/store.js";
import type { StateJSON } from "../../state/json.js";
import { State } from "../../state/state.js";
import { type Case, eventually, type Notes, notes, refuses, saveSteps } from "./case.js";

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
      const saved = await saveSteps(store, 3, "run");
      const entries = await store.history("run");
      assert.deepEqual(
        entries.map(({ bytes: _bytes, ...entry }) => entry),
        saved
          .map((state, index) => ({
            sequence: state.sequence,
            step: state.step,
            node: state.checkpointNode,
            status: state.status,
            timestamp: state.timestamp,
            checkpointId: state.checkpointId,
            parentId: saved[index - 1]?.checkpointId ?? "",
            reason: state.reason,
          }))
          .reverse(),
      );
      for (const { bytes } of entries) assert.ok(bytes === undefined || bytes > 0);
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

/** How many checkpoints stay. */
export const keep: readonly Case[] = [
  [
    "only the newest checkpoints are kept, five by default",
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
    "a save can say how many to keep",
    async (store) => {
      let state = notes("run");
      for (let count = 0; count < 6; count++) state = await store.save(state, { keep: 3 });
      if (store.history === undefined) return;
      await eventually(async () => {
        const entries = await store.history?.("run");
        assert.deepEqual(
          entries?.map((entry) => entry.sequence),
          [6, 5, 4],
        );
      });
    },
  ],
];

/** Listing and pruning runs. */
export const runs: readonly Case[] = [
  [
    "runs can be filtered, most recent first",
    async (store) => {
      if (store.runs === undefined) return;
      for (const [runId, status, timestamp] of [
        ["old", "completed", "2030-01-01T00:00:00.000Z"],
        ["new", "failed", "2030-01-03T00:00:00.000Z"],
        ["mid", "in_progress", "2030-01-02T00:00:00.000Z"],
      ] as const) {
        const graph = { name: runId === "old" ? "a" : "b", version: 0, fingerprint: "f" };
        await store.save(State.fromJSON({ ...notes(runId).toJSON(), status, timestamp, graph }));
      }
      const named = async (
        filter?: Parameters<NonNullable<typeof store.runs>>[0],
      ): Promise<string[]> => ((await store.runs?.(filter)) ?? []).map((run) => run.runId);
      assert.deepEqual(await named(), ["new", "mid", "old"]);
      assert.deepEqual(await named({ status: "failed" }), ["new"]);
      assert.deepEqual(await named({ status: ["failed", "completed"] }), ["new", "old"]);
      assert.deepEqual(await named({ graph: "b", limit: 1 }), ["new"]);
      assert.deepEqual(await named({ before: "2030-01-02T00:00:00.000Z" }), ["old"]);
    },
  ],
  [
    "runs can be paged, also those of one moment",
    async (store) => {
      if (store.runs === undefined) return;
      const timestamp = "2030-01-01T00:00:00.000Z";
      const ids = ["b", "d", "a", "e", "c"];
      for (const runId of ids) {
        await store.save(State.fromJSON({ ...notes(runId).toJSON(), timestamp }));
      }
      const found: string[] = [];
      let page = await store.runs({ limit: 2 });
      while (page.length > 0) {
        found.push(...page.map((run) => run.runId));
        page = await store.runs({ limit: 2, cursor: page.at(-1) });
      }
      assert.deepEqual(found, ["e", "d", "c", "b", "a"]);
    },
  ],
  [
    "prune removes what is old or too much, never a run that goes on",
    async (store) => {
      if (store.prune === undefined) return;
      for (const [runId, status, year] of [
        ["done", "completed", 2001],
        ["failed", "failed", 2002],
        ["going", "in_progress", 2000],
        ["paused", "paused", 2000],
        ["waiting", "pending", 2000],
      ] as const) {
        const timestamp = `${year}-01-01T00:00:00.000Z`;
        await store.save(State.fromJSON({ ...notes(runId).toJSON(), status, timestamp }));
      }
      assert.deepEqual(await store.prune({ maxRuns: 1, dryRun: true }), ["done"]);
      assert.equal((await store.list()).length, 5);
      assert.deepEqual(await store.prune({ maxRuns: 1 }), ["done"]);
      assert.deepEqual(await store.prune({ maxAgeDays: 30 }), ["failed"]);
      assert.deepEqual((await store.list()).sort(), ["going", "paused", "waiting"]);
    },
  ],
  [
    "prune leaves a run alone that somebody has claimed, such as one that is resumed after it failed",
    async (store) => {
      if (store.prune === undefined || store.claim === undefined) return;
      const timestamp = "2001-01-01T00:00:00.000Z";
      await store.save(State.fromJSON({ ...notes("run").toJSON(), status: "failed", timestamp }));
      const claim = await store.claim("run");
      assert.deepEqual(await store.prune({ maxAgeDays: 30 }), []);
      assert.deepEqual(await store.list(), ["run"]);
      await claim?.release();
      assert.deepEqual(await store.prune({ maxAgeDays: 30 }), ["run"]);
    },
  ],
];

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
      const exported: ExportedCheckpoint[] = [];
      for await (const one of store.export("run")) exported.push(one);
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
    "export of an unknown run gives nothing",
    async (store) => {
      for await (const one of store.export?.("unknown") ?? []) assert.fail(String(one));
    },
  ],
];
