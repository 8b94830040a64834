import assert from "node:assert/strict";
import type { CheckpointStore, Retention, RunFilter } from "../../checkpoint/store.js";
import type { StateJSON } from "../../state/json.js";
import { State } from "../../state/state.js";
import { at, type Case, type Notes, notes, refuses } from "./case.js";

/** Saves a run at a moment. */
function saveAt(
  store: CheckpointStore,
  moment: string,
  runId: string,
  fields: Partial<StateJSON> = {},
): Promise<State<Notes>> {
  const state = State.fromJSON<Notes>({ ...notes(runId).toJSON(), ...fields });
  return at(moment, () => store.save(state));
}

async function listed(store: CheckpointStore, filter?: RunFilter): Promise<string[]> {
  return ((await store.runs?.(filter)) ?? []).map((run) => run.runId);
}

const error = { name: "TypeError", message: "boom", node: "write" };

/** Three runs, saved in another order than their last nodes completed. */
async function threeRuns(store: CheckpointStore): Promise<void> {
  for (const [runId, status, day, timestamp] of [
    ["old", "completed", 1, "2030-02-03T00:00:00.000Z"],
    ["new", "failed", 3, "2030-02-01T00:00:00.000Z"],
    ["mid", "in_progress", 2, "2030-02-02T00:00:00.000Z"],
  ] as const) {
    const graph = { name: runId === "old" ? "a" : "b", version: 0, fingerprint: "f" };
    const metadata = { team: runId === "new" ? "docs" : "web", day, weekend: day === 1 };
    const fields = { status, timestamp, graph, metadata };
    await saveAt(store, `2031-01-0${day}T00:00:00.000Z`, runId, fields);
  }
}

export const runs: readonly Case[] = [
  [
    "runs are listed by when they were last saved, most recent first, with all their fields",
    async (store) => {
      if (store.runs === undefined) return;
      const [early, late] = ["2030-01-01T00:00:00.000Z", "2030-01-02T00:00:00.000Z"];
      const fields = {
        status: "failed",
        checkpointNode: "plan",
        nextNode: "write",
        phase: "draft",
        step: 1,
        error: { ...error, stack: "at write" },
        metadata: { team: "docs" },
        graph: { name: "article", version: 0, fingerprint: "f" },
      } as const;
      const first = await saveAt(store, early, "first", fields);
      await saveAt(store, late, "second");
      const [newest, oldest, ...others] = await store.runs();
      assert.deepEqual([newest?.runId, newest?.savedAt, others], ["second", late, []]);
      assert.ok(oldest);
      const { error: listed = error, ...summary } = oldest;
      // An encrypted store does not list the error; no store lists its stack.
      assert.deepEqual(listed, error);
      assert.deepEqual(summary, {
        runId: "first",
        graph: "article",
        status: "failed",
        node: "plan",
        nextNode: "write",
        phase: "draft",
        step: 1,
        startedAt: first.startedAt,
        savedAt: early,
        timestamp: first.timestamp,
        metadata: { team: "docs" },
      });
    },
  ],
  [
    "runs can be filtered by id, status, graph and moment",
    async (store) => {
      if (store.runs === undefined) return;
      await threeRuns(store);
      assert.deepEqual(await listed(store), ["new", "mid", "old"]);
      assert.deepEqual(await listed(store, { runId: "mid" }), ["mid"]);
      assert.deepEqual(await listed(store, { runId: "mid", status: "failed" }), []);
      assert.deepEqual(await listed(store, { runId: "none" }), []);
      assert.deepEqual(await listed(store, { status: "failed" }), ["new"]);
      assert.deepEqual(await listed(store, { status: ["failed", "completed"] }), ["new", "old"]);
      assert.deepEqual(await listed(store, { graph: "b", limit: 1 }), ["new"]);
      assert.deepEqual(await listed(store, { before: "2031-01-02T00:00:00.000Z" }), ["old"]);
      await refuses(async () => store.runs?.({ before: "soon" }), "CONFIG");
    },
  ],
  [
    "runs can be filtered by metadata: all values must be there, each of its type",
    async (store) => {
      if (store.runs === undefined) return;
      await threeRuns(store);
      await saveAt(store, "2031-01-04T00:00:00.000Z", "bare");
      assert.deepEqual(await listed(store, { metadata: { team: "web" } }), ["mid", "old"]);
      assert.deepEqual(await listed(store, { metadata: { team: "web", day: 2 } }), ["mid"]);
      assert.deepEqual(await listed(store, { metadata: { weekend: true } }), ["old"]);
      assert.deepEqual(await listed(store, { metadata: { day: "2" } }), []);
      assert.deepEqual(await listed(store, { metadata: { nobody: 1 } }), []);
      const page = { metadata: { team: "web" }, limit: 1 };
      const [first] = await store.runs(page);
      assert.deepEqual(await listed(store, { ...page, cursor: first }), ["old"]);
    },
  ],
  [
    "a run that is saved again is listed by its newest checkpoint",
    async (store) => {
      if (store.runs === undefined) return;
      const first = await saveAt(store, "2030-01-01T00:00:00.000Z", "first");
      await saveAt(store, "2030-01-02T00:00:00.000Z", "second");
      assert.deepEqual(await listed(store), ["second", "first"]);
      await at("2030-01-03T00:00:00.000Z", () => store.save(first));
      assert.deepEqual(await listed(store), ["first", "second"]);
    },
  ],
  [
    "runs can be paged, also those of one moment",
    async (store) => {
      if (store.runs === undefined) return;
      for (const runId of ["b", "d", "a", "e", "c"]) {
        await saveAt(store, "2030-01-01T00:00:00.000Z", runId);
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
];

/** Runs that were saved long ago, whatever their nodes say of when they completed. */
async function oldRuns(store: CheckpointStore): Promise<void> {
  for (const [runId, status, year] of [
    ["done", "completed", 2001],
    ["failed", "failed", 2002],
    ["busy", "in_progress", 2000],
    ["paused", "paused", 2000],
    ["waiting", "pending", 2000],
  ] as const) {
    await saveAt(store, `${year}-01-01T00:00:00.000Z`, runId, { status });
  }
}

const TODAY = "2030-01-01T00:00:00.000Z";

/** Removing old runs. */
export const prune: readonly Case[] = [
  [
    "prune removes what was saved long ago or is too much, never a run that is not finished",
    async (store) => {
      const removed = (retention: Retention) => at(TODAY, async () => store.prune?.(retention));
      if (store.prune === undefined) return;
      await oldRuns(store);
      const timestamp = "1999-01-01T00:00:00.000Z";
      await saveAt(store, TODAY, "fresh", { status: "completed", timestamp });
      assert.deepEqual(await removed({ maxRuns: 2, dryRun: true }), ["done"]);
      assert.equal((await store.list()).length, 6);
      assert.deepEqual(await removed({ maxRuns: 2 }), ["done"]);
      assert.deepEqual(await removed({ maxAgeDays: 30, dryRun: true }), ["failed"]);
      assert.deepEqual(await removed({ maxAgeDays: 30 }), ["failed"]);
      assert.deepEqual(await removed({ maxAgeDays: 30 }), []);
      assert.deepEqual((await store.list()).sort(), ["busy", "fresh", "paused", "waiting"]);
      await refuses(() => removed({ maxAgeDays: -1 }), "CONFIG");
    },
  ],
  [
    "prune removes by age also what never finished, if asked to",
    async (store) => {
      const removed = (retention: Retention) =>
        at(TODAY, async () => (await store.prune?.(retention))?.sort());
      if (store.prune === undefined) return;
      await oldRuns(store);
      await saveAt(store, TODAY, "fresh");
      const retention = { maxAgeDays: 30, includeAbandoned: true };
      const all = ["busy", "done", "failed", "paused", "waiting"];
      assert.deepEqual(await removed({ ...retention, dryRun: true }), all);
      assert.equal((await store.list()).length, 6);
      assert.deepEqual(await removed({ maxRuns: 9, includeAbandoned: true }), []);
      assert.deepEqual(await removed(retention), all);
      assert.deepEqual(await store.list(), ["fresh"]);
    },
  ],
  [
    "prune leaves a run alone that somebody has claimed, such as one that is resumed after it failed",
    async (store) => {
      if (store.prune === undefined || store.claim === undefined) return;
      await saveAt(store, "2001-01-01T00:00:00.000Z", "run", { status: "failed" });
      await saveAt(store, "2001-01-01T00:00:00.000Z", "busy", { status: "in_progress" });
      // A claim may be a lease by the same clock.
      await at(TODAY, async () => {
        const claims = [await store.claim?.("run"), await store.claim?.("busy")];
        const retention = { maxAgeDays: 30, includeAbandoned: true };
        assert.deepEqual(await store.prune?.(retention), []);
        assert.deepEqual((await store.list()).sort(), ["busy", "run"]);
        for (const claim of claims) await claim?.release();
        assert.deepEqual((await store.prune?.(retention))?.sort(), ["busy", "run"]);
      });
    },
  ],
];
