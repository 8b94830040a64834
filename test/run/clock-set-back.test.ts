import { expect, test } from "vitest";
import { chain, State, StateGraph } from "waymark";
import { useClock } from "../../src/clock.js";
import { RecordingStore } from "../graphs.js";

test("a run whose clock is set back inside a node can be loaded and resumed", async () => {
  let time = Date.parse("2030-01-01T00:00:00Z");
  const restore = useClock({ now: () => time, after: () => () => {} });
  const setBack = (): void => {
    time -= 60_000;
  };
  try {
    const store = new RecordingStore();
    const graph = new StateGraph<{ n: number }>({
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("a", async (_state, context) => ({
        n: await context.once("one", () => {
          setBack();
          return 1;
        }),
      }))
      .addNode(
        "b",
        chain([1, 2], (state) => {
          setBack();
          return state;
        }),
      )
      .addNode("c", () => {
        setBack();
        throw new Error("boom");
      })
      .addEdge("a", "b")
      .addEdge("b", "c")
      .setEntryPoint("a")
      .setExitPoint("c");
    const { runId } = State.create({ n: 0 }, { runId: "r" });
    await graph.execute(State.create({ n: 0 }, { runId })).catch(() => {});
    for (const { checkpointId } of await store.history(runId)) {
      const saved = await store.load<{ n: number }>(runId, { checkpointId });
      const again = State.fromJSON<{ n: number }>(JSON.stringify(saved.toJSON()));
      expect(again.steps.every(({ durationMs }) => durationMs >= 0)).toBe(true);
    }
    expect((await store.load(runId)).step).toBe(2);
  } finally {
    restore();
  }
});
