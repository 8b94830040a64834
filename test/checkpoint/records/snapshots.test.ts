import Database from "libsql";
import { describe, expect, test } from "vitest";
import { END, pause, State, StateGraph } from "../../../src/index.js";
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

describe("a list that grows at each step", () => {
  interface Talk {
    readonly messages: readonly string[];
  }

  const message = (at: number): string => `${at} `.padEnd(1000, "abcdefghijklmnopqrstuvwxyz");

  function talk(client: Database.Database, steps: number) {
    const store = new SqliteStore({ client });
    const written = { bytes: 0 };
    const graph = new StateGraph<Talk>({ checkpoint: { store, interval: 1, preserve: true } })
      .addNode("say", ({ data }) => ({
        messages: [...data.messages, message(data.messages.length)],
      }))
      .addNode("ask", (state) => pause(state, { reason: "enough" }))
      .addEdge("say", "say", ({ data }) => data.messages.length < steps)
      .addEdge("say", "ask")
      .setEntryPoint("say")
      .setExitPoint("ask")
      .on("checkpoint.save", ({ data }) => {
        written.bytes += data.bytes ?? Number.NaN;
      });
    return { graph, written };
  }

  test("is written in proportion to its size, and not to its square", async () => {
    const { graph, written } = talk(new Database(":memory:"), 200);
    await graph.execute(State.create<Talk>({ messages: [] }));
    expect(written.bytes).toBeLessThan(5 * 200 * 1000);
  });

  test("is whole when the run pauses and all but its newest steps were dropped", async () => {
    const client = new Database(":memory:");
    const { runId } = await talk(client, 37).graph.execute(State.create<Talk>({ messages: [] }));
    const { graph } = talk(client, 37);
    expect((await graph.history(runId)).length).toBeLessThan(10);
    const { data, status } = await graph.resume(runId);
    expect(status).toBe("completed");
    expect(data.messages).toEqual(Array.from({ length: 37 }, (_, at) => message(at)));
  });
});
