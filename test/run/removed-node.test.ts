import { describe, expect, test } from "vitest";
import {
  ExecutionError,
  type GraphConfig,
  GraphError,
  type NodeFunction,
  StateGraph,
  subgraph,
} from "waymark";
import { forkRun } from "../../src/checkpoint/fork.js";
import {
  linear,
  mark,
  RecordingStore,
  rejection,
  start,
  stoppedRun,
  type Trail,
} from "../graphs.js";

const saving = (store: RecordingStore, config: GraphConfig<Trail> = {}): GraphConfig<Trail> => ({
  ...config,
  checkpoint: { store, interval: 1, preserve: true },
});

describe("a run in a changed graph continues when", () => {
  test.each<[what: string, now: readonly string[], trail: readonly string[]]>([
    ["a node was added before where it stands", ["new", "a", "b", "c"], ["a", "b", "c"]],
    ["a node was added after where it stands", ["a", "b", "new", "c"], ["a", "b", "new", "c"]],
    ["the node it was about to run was removed", ["a", "c"], ["a", "c"]],
    ["a later node was removed", ["a", "b"], ["a", "b"]],
  ])("%s", async (_what, now, trail) => {
    const store = await stoppedRun(["a", "b", "c"], "b");
    const final = await linear(now, saving(store)).resume("r");
    expect(final.data.trail).toEqual(trail);
    expect(final.status).toBe("completed");
  });

  test("all its remaining nodes were removed: it completes and is saved as such", async () => {
    const store = await stoppedRun(["a", "b", "c"], "b");
    const final = await linear(["a"], saving(store)).resume("r");
    expect(final).toMatchObject({ status: "completed", step: 1 });
    expect(await store.load("r")).toMatchObject({ status: "completed", reason: "complete" });
  });

  test("a node it has passed was removed, whose visits still count", async () => {
    const store = await stoppedRun(["a", "b", "c"], "c");
    const final = await linear(["b", "c"], saving(store)).resume("r");
    expect(final.visits).toEqual({ a: 1, b: 1, c: 1 });
    expect(final.totals).toMatchObject({ a: { visits: 1 }, b: { visits: 1 }, c: { visits: 1 } });
    expect((await store.load("r")).visits).toEqual(final.visits);
  });

  test("the node before its current one was removed", async () => {
    const store = new RecordingStore();
    const halfway: NodeFunction<Trail> = async (_state, context) => {
      await context.once("half", () => 1);
      throw new Error("stop");
    };
    const graph = linear(["a", "b"], saving(store), { b: halfway });
    await rejection(graph.execute(start("r")), Error).catch(() => {});
    expect((await linear(["x", "b"], saving(store)).resume("r")).data.trail).toEqual(["a", "b"]);
  });
});

describe("a run whose current node was removed", () => {
  const stopped = () => stoppedRun(["a", "b", "c"], "c");

  test("is refused by an error that names the missing node and the remedies", async () => {
    const graph = linear(["a", "c"], saving(await stopped()));
    const error = await rejection(graph.resume("r"), GraphError);
    expect(error.code).toBe("GRAPH_NODE_UNKNOWN");
    expect(error.message).toBe(
      'run "r" is after node "b" (step 2), which this graph no longer has; the nodes are: "a", "c". ' +
        "Fork the run at an earlier step (waymark fork r --at 1), " +
        'or set config.onMissingNode, such as { "b": "c" }',
    );
    const { runId } = await graph.fork("r", 1);
    expect((await graph.resume(runId)).data.trail).toEqual(["a", "c"]);
  });

  test("continues at the node that onMissingNode names", async () => {
    const config = saving(await stopped(), { onMissingNode: { b: "c" } });
    const graph = linear(["a", "x", "c"], config);
    const final = await graph.resume("r");
    expect(final.data.trail).toEqual(["a", "b", "c"]);
  });

  test("continues after the renamed node", async () => {
    const config = saving(await stopped(), { onMissingNode: { b: { as: "better" } } });
    const graph = linear(["a", "better", "c"], config);
    expect((await graph.resume("r")).data.trail).toEqual(["a", "b", "c"]);
  });

  test.each([
    [{ b: "nowhere" }, 'config.onMissingNode["b"]: there is no node "nowhere"'],
    [{ b: { as: "nowhere" } }, 'config.onMissingNode["b"]: there is no node "nowhere"'],
  ])("is refused with onMissingNode: %j", async (onMissingNode, message) => {
    const graph = linear(["a", "c"], saving(await stopped(), { onMissingNode }));
    expect((await rejection(graph.resume("r"), GraphError)).message).toContain(message);
  });

  test.each([5, "b", { b: 5 }, { b: "" }, { b: { as: 5 } }, { b: {} }])(
    "onMissingNode may not be %j",
    (onMissingNode) => {
      const make = () => new StateGraph({ onMissingNode: onMissingNode as never });
      expect(make).toThrow(/config\.onMissingNode/);
    },
  );
});

describe("a run in the middle of a removed node", () => {
  const inner = () =>
    linear(
      ["x", "y"],
      {},
      {
        y: () => {
          throw new Error("stop");
        },
      },
    );

  async function stopped(): Promise<RecordingStore> {
    const store = new RecordingStore();
    const graph = new StateGraph<Trail>(saving(store))
      .addNode("a", mark)
      .addNode(
        "sub",
        subgraph<Trail, Trail, string>(inner(), {
          in: ({ data }) => ({ trail: data.trail }),
          out: (_state, { data }) => ({ trail: data.trail }),
        }),
      )
      .addEdge("a", "sub")
      .setEntryPoint("a")
      .setExitPoint("sub");
    await graph.execute(start("r")).catch(() => {});
    return store;
  }

  test("is refused by a clear error", async () => {
    const graph = linear(["a", "b"], saving(await stopped()));
    const error = await rejection(graph.resume("r"), GraphError);
    expect(error.code).toBe("GRAPH_NODE_UNKNOWN");
    expect(error.message).toMatch(/^run "r" is in the middle of node "sub" \(step 1\)/);
    expect(error.message).toContain("waymark fork r --at 1");
    expect(error.message).toContain('such as { "sub": "b" }');
  });

  test("continues after the step it is forked at, as the error proposes", async () => {
    const store = await stopped();
    const graph = linear(["a", "b"], saving(store));
    const { runId } = await graph.fork("r", 1);
    expect((await graph.resume(runId)).data.trail).toEqual(["a", "b"]);
    const { runId: other } = await forkRun(store, "r", { step: 1 }, {});
    expect((await graph.resume(other)).data.trail).toEqual(["a", "b"]);
  });

  test("continues after the step it is rolled back to", async () => {
    const graph = linear(["a", "b"], saving(await stopped()));
    await graph.rollback("r", 1);
    expect((await graph.resume("r")).data.trail).toEqual(["a", "b"]);
  });

  test("that is its first node starts over in a fork at step 0", async () => {
    const store = new RecordingStore();
    const halfway: NodeFunction<Trail> = async (_state, context) => {
      await context.pause("ok", { reason: "approval", ask: "?" });
      throw new Error("stop");
    };
    await linear(["old", "b"], saving(store), { old: halfway }).execute(start("r"));
    const graph = linear(["a", "b"], saving(store));
    expect((await rejection(graph.resume("r"), GraphError)).message).toContain(
      '(waymark fork r --at 0), or set config.onMissingNode, such as { "old": "a" }',
    );
    const { runId } = await graph.fork("r", 0);
    expect((await graph.resume(runId)).data.trail).toEqual(["a", "b"]);
  });

  test("starts the node that onMissingNode names from the beginning", async () => {
    const config = saving(await stopped(), { onMissingNode: { sub: "b" } });
    const known: unknown[] = [];
    const b: NodeFunction<Trail> = (state, context) => {
      known.push(context.recall("subgraph"));
      return mark(state, context);
    };
    const final = await linear(["a", "b"], config, { b }).resume("r");
    expect(final.data.trail).toEqual(["a", "b"]);
    expect(known).toEqual([undefined]);
  });

  test("continues in the renamed node, with its remembered values", async () => {
    const store = new RecordingStore();
    const once: NodeFunction<Trail> = async (state, context) => {
      const value = await context.once("charge", () => context.node);
      if (context.node === "old") throw new Error("stop");
      return state.set("trail", [...state.data.trail, value]);
    };
    const before = linear(["a", "old"], saving(store), { old: once });
    await before.execute(start("r")).catch(() => {});
    const config = saving(store, { onMissingNode: { old: { as: "new" } } });
    const final = await linear(["a", "new"], config, { new: once }).resume("r");
    expect(final.data.trail).toEqual(["a", "old"]);
  });

  test("no longer waits for a removed node's pause", async () => {
    const store = new RecordingStore();
    const asks: NodeFunction<Trail> = async (state, context) => {
      await context.pause("ok", { reason: "approval", ask: "?" });
      return state;
    };
    const paused = await linear(["a", "asks"], saving(store), { asks }).execute(start("r"));
    expect(paused.status).toBe("paused");
    const config = saving(store, { onMissingNode: { asks: "b" } });
    expect((await linear(["a", "b"], config).resume("r")).data.trail).toEqual(["a", "b"]);
  });
});

test("a completed run is returned unchanged, even if its last node was removed", async () => {
  const store = new RecordingStore();
  await linear(["a", "b"], saving(store)).execute(start("r"));
  const final = await linear(["a", "x"], saving(store)).resume("r");
  expect(final).toMatchObject({ status: "completed", checkpointNode: "b" });
});

describe("a run in a subgraph that was changed", () => {
  const around = (inner: StateGraph<Trail, string>, store: RecordingStore) =>
    new StateGraph<Trail>(saving(store))
      .addNode(
        "sub",
        subgraph(inner, {
          in: ({ data }) => ({ trail: data.trail }),
          out: (_state, { data }) => ({ trail: data.trail }),
        }),
      )
      .setEntryPoint("sub")
      .setExitPoint("sub");

  async function stopped(): Promise<RecordingStore> {
    const store = new RecordingStore();
    const failing: NodeFunction<Trail> = () => {
      throw new Error("stop");
    };
    await around(linear(["x", "y"], {}, { y: failing }), store)
      .execute(start("r"))
      .catch(() => {});
    return store;
  }

  test("continues, and graph.mismatch names the changes", async () => {
    const graph = around(linear(["x", "new", "y"]), await stopped());
    const changes: unknown[] = [];
    graph.on("graph.mismatch", ({ path, data }) => changes.push([path, data]));
    expect((await graph.resume("r")).data.trail).toEqual(["x", "new", "y"]);
    const named = { added: ["new"], removed: [] };
    expect(changes).toContainEqual([["sub"], expect.objectContaining(named)]);
  });

  test("is refused at a removed node, with the steps to fork and options to set", async () => {
    const graph = around(linear(["y"], { name: "inner" }), await stopped());
    const error = await rejection(graph.resume("r"), ExecutionError);
    expect(error.message).toContain(
      'Fork the run that contains it at an earlier step, or set config.onMissingNode of graph "inner", such as { "x": "y" }',
    );
  });
});
