import { describe, expect, test } from "vitest";
import {
  ExecutionError,
  type GraphConfig,
  GraphError,
  type NodeFunction,
  pause,
  State,
  StateGraph,
} from "waymark";
import { cycle, linear, mark, RecordingStore, rejection, start, type Trail } from "../graphs.js";
import { configError } from "../matchers.js";

type Nodes = Readonly<Record<string, NodeFunction<Trail>>>;

/** a → b → c with these breakpoints, and what ran. */
function graphOf(
  breakpoints: NonNullable<GraphConfig["breakpoints"]>,
  nodes: Nodes = {},
  interval = 1,
) {
  const store = new RecordingStore();
  const ran: string[] = [];
  const tell: NodeFunction<Trail> = (state, context) => {
    ran.push(context.node);
    return (nodes[context.node] ?? mark)(state, context);
  };
  const config = { breakpoints, checkpoint: { store, interval, preserve: true } };
  const graph = linear(["a", "b", "c"], config, { a: tell, b: tell, c: tell });
  return { graph, store, ran };
}

describe("a breakpoint before a node", () => {
  test("stops the run there, saved, and a resume without input continues", async () => {
    for (const interval of [1, 5]) {
      const { graph, store, ran } = graphOf({ before: ["b"] }, {}, interval);
      const paused = await graph.execute(start("r"));
      expect(paused).toMatchObject({ status: "paused", step: 1, checkpointNode: "a" });
      const reason = 'breakpoint before "b"';
      expect(paused.pauses).toEqual([{ name: "", reason, breakpoint: "before" }]);
      expect(ran).toEqual(["a"]);
      const loaded = State.fromJSON(JSON.stringify(await store.load("r")));
      expect(loaded.pauses).toEqual(paused.pauses);
      const final = await graph.resume("r");
      expect([final.status, final.data.trail]).toEqual(["completed", ["a", "b", "c"]]);
      expect(ran).toEqual(["a", "b", "c"]);
    }
  });

  test("stops before the very first node", async () => {
    const { graph, ran } = graphOf({ before: ["a"] });
    expect(await graph.execute(start("r"))).toMatchObject({ status: "paused", step: 0 });
    expect(ran).toEqual([]);
    expect((await graph.resume("r")).step).toBe(3);
  });

  test("does not stop again after a crash in the node behind it", async () => {
    const store = new RecordingStore();
    let crash = true;
    const b: NodeFunction<Trail> = (state, context) =>
      crash ? new Promise(() => {}) : mark(state, context);
    const config = { breakpoints: { before: ["b"] }, checkpoint: { store, interval: 1 } };
    const graph = linear(["a", "b"], config, { b });
    await graph.execute(start("r"));
    graph.resume("r");
    await new Promise(setImmediate);
    expect(await store.load("r")).toMatchObject({ status: "in_progress", reason: "breakpoint" });
    crash = false;
    await store.forgetClaims();
    expect((await graph.resume("r")).status).toBe("completed");
  });

  test("does not stop again after a crash in the node that had saved work", async () => {
    let fail = true;
    const { graph } = graphOf(
      { before: ["b"] },
      {
        b: async (state, context) => {
          await context.once("x", () => 1);
          if (fail) throw new Error("boom");
          return mark(state, context);
        },
      },
    );
    await graph.execute(start("r"));
    await rejection(graph.resume("r"), ExecutionError);
    fail = false;
    expect((await graph.resume("r")).status).toBe("completed");
  });

  test("stops a run that resumes from another pause", async () => {
    const { graph } = graphOf(
      { before: ["b"], after: [] },
      { a: (state) => pause(state, { reason: "review", ask: "?" }) },
    );
    expect((await graph.execute(start("r"))).pauses[0]?.reason).toBe("review");
    const second = await graph.resume("r", { input: { trail: ["answered"] } });
    expect(second.pauses[0]?.breakpoint).toBe("before");
    expect((await graph.resume("r")).data.trail).toEqual(["answered", "b", "c"]);
  });
});

describe("a breakpoint after a node", () => {
  test("stops the run once the node is done and saved", async () => {
    const { graph, ran } = graphOf({ after: ["b"] });
    const paused = await graph.execute(start("r"));
    expect(paused).toMatchObject({ status: "paused", step: 2, checkpointNode: "b" });
    expect(paused.pauses[0]).toMatchObject({ breakpoint: "after", reason: 'breakpoint after "b"' });
    const final = await graph.resume("r");
    expect([final.status, ran]).toEqual(["completed", ["a", "b", "c"]]);
  });

  test("at an exit point stops too; the resume completes the run", async () => {
    const { graph, ran, store } = graphOf({ after: ["c"] });
    expect((await graph.execute(start("r"))).status).toBe("paused");
    expect(await graph.resume("r")).toMatchObject({ status: "completed", step: 3 });
    expect(ran).toEqual(["a", "b", "c"]);
    expect((await store.load("r")).status).toBe("completed");
    expect((await graph.resume("r")).status).toBe("completed");
  });

  test("yields to a pause of the node itself, which takes its input as usual", async () => {
    const { graph } = graphOf(
      { after: ["a"] },
      { a: (state) => pause(state, { reason: "review", ask: "?" }) },
    );
    const paused = await graph.execute(start("r"));
    expect(paused.pauses).toEqual([{ name: "", reason: "review", ask: "?" }]);
    const final = await graph.resume("r", { input: { trail: ["x"] } });
    expect(final.data.trail).toEqual(["x", "b", "c"]);
  });
});

test("consecutive breakpoints after one node and before the next stop once each", async () => {
  const { graph, ran } = graphOf({ before: ["b", "c"], after: ["a", "b"] });
  const stops: unknown[] = [];
  let state = await graph.execute(start("r"));
  while (state.status === "paused") {
    stops.push(state.pauses[0]?.reason);
    state = await graph.resume("r");
  }
  expect(stops).toEqual([
    'breakpoint after "a"',
    'breakpoint before "b"',
    'breakpoint after "b"',
    'breakpoint before "c"',
  ]);
  expect(ran).toEqual(["a", "b", "c"]);
});

test("a breakpoint in a cycle stops each visit", async () => {
  const store = new RecordingStore();
  const graph = cycle(3, { breakpoints: { before: ["tick"] }, checkpoint: { store, interval: 1 } });
  let stops = 0;
  let state = await graph.execute(start("r"));
  for (; state.status === "paused"; state = await graph.resume("r")) stops++;
  expect([stops, state.data.trail]).toEqual([3, ["tick", "tick", "tick", "done"]]);
});

test("input at a breakpoint is refused", async () => {
  const { graph, store } = graphOf({ before: ["b"] });
  await graph.execute(start("r"));
  const error = await graph.resume("r", { input: { trail: [] } }).catch((thrown) => thrown);
  expect(error).toEqual(
    configError("input", /only stopped at a breakpoint before "b": resume it without input/),
  );
  expect((await store.load("r")).status).toBe("paused");
});

test("a run at a breakpoint can be forked with changes, and rolled back", async () => {
  const { graph } = graphOf({ before: ["b"] });
  const { checkpointId } = await graph.execute(start("r"));
  const fork = await graph.fork("r", checkpointId, { trail: ["forked"] });
  expect(fork.status).toBe("paused");
  expect((await graph.resume(fork.runId)).data.trail).toEqual(["forked", "b", "c"]);
  await graph.resume("r");
  expect((await graph.rollback("r", { checkpointId })).status).toBe("paused");
  expect((await graph.resume("r")).data.trail).toEqual(["a", "b", "c"]);
});

test("a breakpoint without checkpointing is a clear error before anything runs", async () => {
  for (const breakpoints of [{ before: ["a"] }, { after: ["b"] }]) {
    let ran = 0;
    const a: NodeFunction<Trail> = (state) => {
      ran++;
      return state;
    };
    const graph = linear(["a", "b"], { breakpoints }, { a });
    const [where] = Object.keys(breakpoints);
    await expect(graph.execute(start())).rejects.toEqual(
      configError(
        `config.breakpoints.${where}`,
        /needs checkpoints to continue from: set config.checkpoint.interval to 1 or more/,
      ),
    );
    expect(ran).toBe(0);
  }
  expect((await linear(["a"], { breakpoints: {} }).execute(start())).status).toBe("completed");
});

test("a breakpoint at an unknown node is an error that names the known ones", async () => {
  const { graph } = graphOf({ before: ["bb"] });
  const error = await rejection(graph.execute(start()), GraphError);
  expect(error.message).toBe(
    'config.breakpoints.before: there is no node "bb"; the nodes are: "a", "b", "c"',
  );
  expect(() => new StateGraph({ breakpoints: { befor: ["a"] } as never })).toThrow(
    configError("config.breakpoints.befor") as Error,
  );
});
