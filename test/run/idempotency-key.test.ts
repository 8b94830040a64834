import { expect, test } from "vitest";
import { ExecutionError, StateGraph } from "waymark";
import { mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

test("idempotencyKey is the same over retries and resumes, and another for each visit, node and run", async () => {
  const keys: string[] = [];
  let fail = 2;
  const store = new RecordingStore();
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1 } })
    .addNode(
      "tick",
      (state, context) => {
        keys.push(context.idempotencyKey);
        if (state.data.trail.length === 1 && fail-- > 0) throw new Error("down");
        return mark(state, context);
      },
      { retry: { maxAttempts: 2, initialInterval: 0 } },
    )
    .addNode("done", (state, context) => {
      keys.push(context.idempotencyKey);
      return mark(state, context);
    })
    .addEdge("tick", "tick", (state) => state.data.trail.length < 2)
    .addEdge("tick", "done")
    .setEntryPoint("tick")
    .setExitPoint("done");
  await rejection(graph.execute(start("r")), ExecutionError);
  await graph.resume("r");
  expect(keys).toEqual(["r:0:tick", "r:1:tick", "r:1:tick", "r:1:tick", "r:2:done"]);
  await graph.execute(start("s"));
  expect(keys.at(-1)).toBe("s:2:done");
});
