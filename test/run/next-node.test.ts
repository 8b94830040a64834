import { describe, expect, test } from "vitest";
import {
  ConfigError,
  END,
  ExecutionError,
  GraphError,
  type NodeFunction,
  pause,
  type State,
  StateGraph,
} from "waymark";
import {
  gate,
  linear,
  mark,
  RecordingStore,
  rejection,
  start,
  type Trail,
  thrown,
} from "../graphs.js";

const abc = ["a", "b", "c"];

/** Each save as `reason:step→next`; what a checkpoint says must be what the graph says of it. */
function told(store: RecordingStore, graph: StateGraph<Trail, string>): string[] {
  return store.saved.map((state) => {
    expect(graph.nextNode(state)).toBe(state.nextNode);
    return `${state.reason}:${state.step}→${state.nextNode ?? "end"}`;
  });
}

function graphOf(nodes: Readonly<Record<string, NodeFunction<Trail>>>, config: object = {}) {
  const store = new RecordingStore();
  const checkpoint = { store, interval: 1, preserve: true };
  return { store, graph: linear(abc, { ...config, checkpoint }, nodes) };
}

const boom: NodeFunction<Trail> = () => {
  throw new Error("boom");
};

describe("each checkpoint records where a resume would continue:", () => {
  test("at the start, at intervals and at the end", async () => {
    const { graph, store } = graphOf({});
    await graph.execute(start());
    expect(told(store, graph)).toEqual([
      "start:0→a",
      "interval:1→b",
      "interval:2→c",
      "complete:3→end",
    ]);
  });

  test("inside an incomplete node", async () => {
    const { graph, store } = graphOf({
      b: async (state, context) => {
        await context.once("pay", () => 1);
        const half = await context.checkpoint(state.set("trail", ["half"]), "half");
        return mark(half, context);
      },
    });
    await graph.execute(start());
    expect(told(store, graph).slice(2, 4)).toEqual(["once:1→b", "half:1→b"]);
  });

  test("at a pause inside a node, and once it is answered", async () => {
    const { graph, store } = graphOf({
      b: async (state, context) => {
        await context.pause("ok", { reason: "review", ask: "?" });
        return mark(state, context);
      },
    });
    await graph.execute(start("r"));
    await graph.resume("r", { input: "yes" });
    expect(told(store, graph).slice(2)).toEqual([
      "pause:1→b",
      "input:1→b",
      "interval:2→c",
      "complete:3→end",
    ]);
  });

  test("at a pause after a node, and once it is answered", async () => {
    const { graph, store } = graphOf({ b: (state) => pause(state, { reason: "cool down" }) });
    await graph.execute(start("r"));
    await graph.resume("r");
    expect(told(store, graph).slice(2)).toEqual(["pause:2→c", "resume:2→c", "complete:3→end"]);
  });

  test("at a pause whose answer leads another way", async () => {
    const store = new RecordingStore();
    const graph = new StateGraph<Trail, string>({
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("ask", (state) => pause(state, { reason: "go", ask: "?", into: "trail" }))
      .addNode("yes", mark)
      .addNode("no", mark)
      .addEdge("ask", "yes", (state) => state.data.trail[0] === "yes")
      .addEdge("ask", "no")
      .addEdge("yes", END)
      .addEdge("no", END)
      .setEntryPoint("ask");
    await graph.execute(start("r"));
    await graph.resume("r", { input: ["yes"] });
    expect(told(store, graph)).toEqual([
      "start:0→ask",
      "pause:1→no",
      "input:1→yes",
      "complete:2→end",
    ]);
  });

  test("at a pause of an exit point", async () => {
    const { graph, store } = graphOf({ c: (state) => pause(state, { reason: "review" }) });
    await graph.execute(start("r"));
    await graph.resume("r");
    expect(told(store, graph).slice(3)).toEqual(["pause:3→end", "resume:3→end", "complete:3→end"]);
  });

  test("at breakpoints", async () => {
    const { graph, store } = graphOf({}, { breakpoints: { before: ["b"], after: ["b"] } });
    await graph.execute(start("r"));
    await graph.resume("r");
    await graph.resume("r");
    expect(told(store, graph).slice(2)).toEqual([
      "pause:1→b",
      "breakpoint:1→b",
      "pause:2→c",
      "resume:2→c",
      "complete:3→end",
    ]);
  });

  test.each([
    ["the first node", "a", "failure:0→a"],
    ["another node", "b", "failure:1→b"],
    ["the last node", "c", "failure:2→c"],
  ])("where %s failed", async (_which, node, last) => {
    const { graph, store } = graphOf({ [node]: boom });
    await rejection(graph.execute(start()), ExecutionError);
    expect(told(store, graph).at(-1)).toBe(last);
  });

  test("where a node failed after saving work", async () => {
    const { graph, store } = graphOf({
      b: async (_state, context) => {
        await context.once("pay", () => 1);
        throw new Error("boom");
      },
    });
    await rejection(graph.execute(start()), ExecutionError);
    expect(told(store, graph).slice(2)).toEqual(["once:1→b", "failure:1→b"]);
  });

  test("nowhere if no edge matched or a predicate failed, until the edges change", async () => {
    for (const predicate of [() => false, () => boom as never]) {
      const store = new RecordingStore();
      const graph = new StateGraph<Trail, string>({ checkpoint: { store, interval: 1 } })
        .addNode("a", mark)
        .addNode("b", mark)
        .addEdge("a", "b", predicate)
        .setEntryPoint("a")
        .setExitPoint("b");
      await rejection(graph.execute(start("r")), ExecutionError);
      expect(told(store, graph)).toEqual(["start:0→a", "interval:1→end", "failure:1→end"]);
      const mended = linear(["a", "b"], { checkpoint: { store, interval: 1 } });
      expect(mended.nextNode(await store.load<Trail>("r"))).toBe("b");
    }
  });

  test("where the run was cancelled", async () => {
    const controller = new AbortController();
    const store = new RecordingStore();
    const graph = linear(
      abc,
      { checkpoint: { store, interval: 9 } },
      {
        b: (state, context) => {
          controller.abort();
          return mark(state, context);
        },
      },
    );
    await rejection(graph.execute(start(), { signal: controller.signal }), ExecutionError);
    expect(told(store, graph)).toEqual(["start:0→a", "abort:2→c"]);
  });

  test("where the graph was drained", async () => {
    const inside = gate();
    const finish = gate();
    const store = new RecordingStore();
    const graph = linear(
      abc,
      { checkpoint: { store, interval: 9 } },
      {
        a: async (state, context) => {
          inside.open();
          await finish.opened;
          return mark(state, context);
        },
      },
    );
    const running = graph.execute(start());
    running.catch(() => {});
    await inside.opened;
    const drained = graph.drain();
    finish.open();
    await drained;
    await rejection(running, ExecutionError);
    expect(told(store, graph)).toEqual(["start:0→a", "abort:1→b"]);
  });

  test("after a rollback and in a fork", async () => {
    const { graph, store } = graphOf({});
    await graph.execute(start("r"));
    await graph.rollback("r", 1);
    await graph.rollback("r", 0);
    await graph.fork("r", 2);
    await graph.fork("r", 3);
    expect(told(store, graph).slice(4)).toEqual([
      "rollback:1→b",
      "rollback:0→a",
      "fork:2→c",
      "fork:3→end",
    ]);
  });

  test("in a fork whose changes lead another way", async () => {
    const store = new RecordingStore();
    const graph = new StateGraph<Trail, string>({
      checkpoint: { store, interval: 1, preserve: true },
    })
      .addNode("a", mark)
      .addNode("b", mark)
      .addEdge("a", "a", (state) => state.data.trail.length < 2)
      .addEdge("a", "b")
      .setEntryPoint("a")
      .setExitPoint("b");
    await graph.execute(start("r"));
    await graph.fork("r", 1, { trail: ["a", "a", "a"] });
    expect(told(store, graph).slice(-1)).toEqual(["fork:1→b"]);
  });
});

describe("graph.nextNode", () => {
  test("of a new State is the entry point", () => {
    expect(linear(abc).nextNode(start())).toBe("a");
  });

  test("evaluates the edges again with the data of the given State", async () => {
    const graph = linear(abc);
    const state = start().setCheckpointNode("b") as State<Trail>;
    expect(graph.nextNode(state)).toBe("c");
  });

  test("refuses a State at an unknown node, and a value that is not a State", () => {
    const graph = linear(abc);
    const stranger = start().setCheckpointNode("z");
    expect(thrown(() => graph.nextNode(stranger), GraphError).code).toBe("GRAPH_NODE_UNKNOWN");
    expect(thrown(() => graph.nextNode({} as State<Trail>), ConfigError).option).toBe("state");
  });
});
