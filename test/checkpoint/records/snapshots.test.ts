import Database from "libsql";
import { expect, test } from "vitest";
import { END, State, StateGraph } from "../../../src/index.js";
import { SqliteStore } from "../../../src/stores/sqlite.js";

interface Trail {
  readonly text: string;
  readonly n: number;
}

/** For each record of a run of so many steps, whether it is a snapshot. */
async function snapshotsOf(text: string, steps: number): Promise<boolean[]> {
  const client = new Database(":memory:");
  const store = new SqliteStore({ client, keep: Number.POSITIVE_INFINITY });
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1, preserve: true } })
    .addNode("walk", (state) => ({ n: state.data.n + 1 }))
    .addEdge("walk", "walk", ({ data }) => data.n < steps)
    .addEdge("walk", END)
    .setEntryPoint("walk");
  const { data } = await graph.execute(State.create<Trail>({ text, n: 0 }));
  expect(data.n).toBe(steps);
  const rows = client.prepare("SELECT base = sequence AS isSnapshot FROM checkpoints").all();
  await store.close();
  return (rows as { isSnapshot: number }[]).map(({ isSnapshot }) => isSnapshot === 1);
}

test("a run ends with a snapshot where its patches take longer to read", async () => {
  const snapshots = await snapshotsOf("x".repeat(12_000), 10);
  expect(snapshots.filter(Boolean)).toHaveLength(2);
  expect([snapshots.at(0), snapshots.at(-1)]).toEqual([true, true]);
});

test("a run that ends soon after a large snapshot is not written again", async () => {
  const snapshots = await snapshotsOf("x".repeat(100_000), 10);
  expect(snapshots.filter(Boolean)).toHaveLength(1);
  expect(snapshots.at(0)).toBe(true);
});
