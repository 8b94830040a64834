import { expect, test } from "vitest";
import { ExecutionError, keyEquals, State, StateGraph } from "waymark";
import { cycle, linear, listen, mark, rejection, start, type Trail } from "../graphs.js";

interface Order {
  readonly kind: string;
}

function router(): StateGraph<Order, string> {
  return new StateGraph<Order, string>()
    .addNode("sort", (state) => state)
    .addNode("book", (state) => state)
    .addNode("toy", (state) => state)
    .addEdge("sort", "book", keyEquals<Order, "kind">("kind", "book"))
    .addEdge("sort", "toy", keyEquals<Order, "kind">("kind", "toy"))
    .setEntryPoint("sort")
    .setExitPoint("book")
    .setExitPoint("toy");
}

test("runs a linear path, each node on the result of the previous one", async () => {
  const final = await linear(["a", "b", "c"]).execute(start());
  expect(final.data.trail).toEqual(["a", "b", "c"]);
});

test.each(["book", "toy"])("routes by predicate and ends at the exit %s", async (kind) => {
  const final = await router().execute(State.create({ kind }));
  expect(final.checkpointNode).toBe(kind);
  expect(final.status).toBe("completed");
});

test("a missing matching edge is an error that names the existing edges", async () => {
  const error = await rejection(router().execute(State.create({ kind: "car" })), ExecutionError);
  expect(error.code).toBe("NO_MATCHING_EDGE");
  expect(error.nodeName).toBe("sort");
  expect(error.message).toContain('"book", "toy"');
  expect(error.path).toEqual(["sort"]);
  expect(error.state).toMatchObject({ step: 1, checkpointNode: "sort", status: "failed" });
  expect("cause" in error).toBe(false);
});

test("a run ends at an exit point even if it has edges", async () => {
  const final = await linear(["a", "b", "c"]).setExitPoint("b").execute(start());
  expect(final.data.trail).toEqual(["a", "b"]);
});

test("a cycle runs until its edge no longer matches, and emits each return", async () => {
  const graph = cycle(3);
  const events = listen(graph);
  const final = await graph.execute(start());
  expect(final.data.trail).toEqual(["tick", "tick", "tick", "done"]);
  expect(events.filter(({ type }) => type === "cycle.detected").map(({ data }) => data)).toEqual([
    { node: "tick", visitCount: 2, step: 1 },
    { node: "tick", visitCount: 3, step: 2 },
  ]);
});

test("maxIterations limits how many nodes may complete", async () => {
  const config = { maxIterations: 4 };
  expect((await cycle(3, config).execute(start())).step).toBe(4);
  const error = await rejection(cycle(4, config).execute(start()), ExecutionError);
  expect(error.code).toBe("MAX_ITERATIONS");
  expect(error.nodeName).toBe("done");
  expect(error.message).toContain("completed 4 nodes");
  expect(error.path).toEqual(["tick", "tick", "tick", "tick"]);
  expect(error.state.step).toBe(4);
});

test("maxIterations is 1000 by default", async () => {
  expect((await cycle(999).execute(start())).step).toBe(1000);
  expect((await rejection(cycle(1000).execute(start()), ExecutionError)).state.step).toBe(1000);
});

test("the final State has its end, its time and how often each node ran", async () => {
  const initial = start("run-7");
  const graph = cycle(2, { name: "ticker", version: 3 });
  const final = await graph.execute(initial);
  expect(final).toMatchObject({
    runId: "run-7",
    checkpointNode: "done",
    step: 3,
    status: "completed",
    error: undefined,
    visits: { tick: 2, done: 1 },
    graph: { name: "ticker", version: 3, fingerprint: graph.fingerprint },
    parent: undefined,
    checkpointId: "",
    sequence: 0,
  });
  expect(Date.parse(final.timestamp)).toBeGreaterThanOrEqual(Date.parse(initial.timestamp));
  expect(initial).toMatchObject({ step: 0, status: "pending", checkpointNode: "", visits: {} });
});

test("a State that has run starts over at the entry point, in the same run", async () => {
  const graph = linear(["a", "b"]);
  const once = await graph.execute(start());
  const twice = await graph.execute(once);
  expect(twice).toMatchObject({ runId: once.runId, step: 2, visits: { a: 1, b: 1 } });
  expect(twice.data.trail).toEqual(["a", "b", "a", "b"]);
});

test("concurrent runs of one graph do not mix", async () => {
  const graph = linear(["a", "b", "c"], {}, { b: async (state, ctx) => mark(state, ctx) });
  const runs = Array.from({ length: 50 }, (_, at) => graph.execute(start(`run-${at}`)));
  const finals = await Promise.all(runs);
  expect(finals.map((final) => final.runId)).toEqual(finals.map((_, at) => `run-${at}`));
  for (const final of finals) expect(final.data.trail).toEqual(["a", "b", "c"]);
});

test("a node gets its run, name, step, key and signal", async () => {
  const seen: object[] = [];
  const graph = linear(
    ["a", "b"],
    {},
    {
      b: (state, ctx) => {
        const { runId, node, step, idempotencyKey, signal } = ctx;
        seen.push({ runId, node, step, idempotencyKey, aborted: signal.aborted });
        return state;
      },
    },
  );
  await graph.execute(start("r"));
  expect(seen).toEqual([
    { runId: "r", node: "b", step: 1, idempotencyKey: "r:1:b", aborted: false },
  ]);
});

test("the idempotency key differs between two visits of one node", async () => {
  const keys = new Set<string>();
  const graph = new StateGraph<Trail>()
    .addNode("a", (state, ctx) => {
      keys.add(ctx.idempotencyKey);
      return mark(state, ctx);
    })
    .addNode("end", mark)
    .addEdge("a", "a", (state) => state.data.trail.length < 3)
    .addEdge("a", "end")
    .setEntryPoint("a")
    .setExitPoint("end");
  await graph.execute(start());
  expect(keys.size).toBe(3);
});

test("refuses unknown options", async () => {
  const graph = linear(["a"], { checkpoint: { interval: 1 } });
  const execute = graph.execute.bind(graph) as (
    state: State<Trail>,
    options: object,
  ) => Promise<unknown>;
  await expect(execute(start(), { step: 1 })).rejects.toMatchObject({ option: "options.step" });
  await expect(execute(start(), { signal: {} })).rejects.toMatchObject({
    option: "options.signal",
  });
  await expect(graph.resume("r", { timeout: 1 } as object)).rejects.toMatchObject({
    option: "options.timeout",
  });
  await expect(graph.resumeOrStart(start(), { step: 1 } as object)).rejects.toMatchObject({
    option: "options.step",
  });
});
