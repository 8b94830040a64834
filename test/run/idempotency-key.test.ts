import { expect, test } from "vitest";
import { ExecutionError, MemoryStore, type NodeFunction, StateGraph } from "waymark";
import { linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";

test("idempotencyKey stays the same over retries and resumes, and differs by visit, node and run", async () => {
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

test("idempotencyKey changes after a rollback", async () => {
  const store = new MemoryStore({ keep: 20 });
  const keys: string[] = [];
  let fails = true;
  const b: NodeFunction<Trail> = (state, context) => {
    keys.push(context.idempotencyKey);
    if (fails) throw new Error("stop");
    return mark(state, context);
  };
  const graph = linear(["a", "b"], { checkpoint: { store, interval: 1, preserve: true } }, { b });
  await graph.execute(start("r")).catch(() => {});
  fails = false;
  await graph.resume("r");
  expect(new Set(keys)).toEqual(new Set(["r:1:b"]));
  for (const again of [
    () => graph.rollback("r", 1).then(() => graph.resume("r")),
    () => graph.rollback("r", 1).then(() => graph.resume("r")),
    () => graph.resume("r", { step: 1 }),
  ]) {
    await again();
  }
  expect(new Set(keys).size).toBe(4);
  expect(new Set(keys.map((key) => key.split("@")[0]))).toEqual(new Set(["r:1:b"]));
});
