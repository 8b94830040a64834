import { expect, test } from "vitest";
import { ExecutionError, State, StateGraph } from "waymark";
import { Path } from "../../src/run/loop/loop.js";
import { collectGarbage, rejection } from "../graphs.js";

function names(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, at) => `n${from + at}`);
}

test.each([0, 1, 99, 100, 101, 199, 200, 201, 1000])(
  "the path after %i nodes holds the last 100",
  (count) => {
    const path = new Path();
    for (const name of names(0, count)) path.add(name);
    expect(path.list()).toEqual(names(Math.max(0, count - 100), count));
  },
);

test("the path does not grow with the run", async () => {
  const path = new Path();
  await collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let step = 0; step < 2_000_000; step++) path.add("node");
  await collectGarbage();
  // Two million names would take 16 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000);
  expect(path.list()).toHaveLength(100);
});

test("a run of 200,000 steps keeps only the last 100 nodes of its path", async () => {
  const graph = new StateGraph<{ n: number }>({ maxIterations: 200_000 })
    .addNode("tick", (state) => state.set("n", state.data.n + 1))
    .addNode("tock", (state) => state)
    .addNode("end", (state) => state)
    .addEdge("tick", "tock", (state) => state.data.n % 2 === 0)
    .addEdge("tick", "tick", () => true)
    .addEdge("tick", "end")
    .addEdge("tock", "tick")
    .setEntryPoint("tick")
    .setExitPoint("end");
  const error = await rejection(graph.execute(State.create({ n: 0 })), ExecutionError);
  expect(error.code).toBe("MAX_ITERATIONS");
  expect(error.state.step).toBe(200_000);
  expect(error.path).toHaveLength(100);
  expect(new Set(error.path)).toEqual(new Set(["tick", "tock"]));
});
