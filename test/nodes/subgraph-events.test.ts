import { describe, expect, test } from "vitest";
import { type AnyEvent, MemoryStore, parallel, State, StateGraph, subgraph } from "waymark";
import { metrics } from "waymark/observers/metrics";
import { linear, start, type Trail } from "../graphs.js";
import { only } from "./nodes.js";

const inside = (inner: StateGraph<Trail, string>) =>
  subgraph<Trail, Trail, string>(inner, {
    in: ({ data }) => ({ trail: data.trail }),
    out: (_state, { data }) => ({ trail: data.trail }),
  });

const pathsOf = (events: readonly AnyEvent[], type: string): string[] =>
  events.filter((event) => event.type === type).map(({ path = [] }) => path.join("/"));

describe("events of a graph inside a node", () => {
  test("reach the outer listeners with the nodes that lead to them", async () => {
    const events: AnyEvent[] = [];
    const inner = linear(["a", "b"], { name: "inner" });
    const outer = only(inside(inner), { name: "outer", observer: (event) => events.push(event) });
    await outer.execute(start("r"));
    expect(pathsOf(events, "node.start")).toEqual(["", "work/a", "work/b"]);
    expect(pathsOf(events, "node.complete")).toEqual(["work/a", "work/b", ""]);
    expect(pathsOf(events, "graph.start")).toEqual(["", "work"]);
    expect(pathsOf(events, "graph.complete")).toEqual(["work", ""]);
    const [nested] = events.filter(({ path }) => path !== undefined);
    expect(nested).toMatchObject({ source: "inner", runId: "r:0:work", rootRunId: "r" });
  });

  test("have a path through every graph around theirs", async () => {
    const events: AnyEvent[] = [];
    const middle = new StateGraph<Trail>()
      .addNode("draft", inside(linear(["a"])))
      .setEntryPoint("draft")
      .setExitPoint("draft");
    const outer = only(inside(middle));
    outer.on("node.start", (event) => events.push(event as AnyEvent));
    await outer.execute(start("r"));
    expect(pathsOf(events, "node.start")).toEqual(["", "work/draft", "work/draft/a"]);
    expect(new Set(events.slice(1).map(({ rootRunId }) => rootRunId))).toEqual(new Set(["r"]));
  });

  test("reach a listener of both graphs once", async () => {
    for (const observer of [observerOf("function"), observerOf("object")]) {
      const inner = linear(["a"], { observer: observer.given });
      const middle = only(inside(inner), { observer: observer.given });
      await only(inside(middle), { observer: observer.given }).execute(start("r"));
      const nodes = observer.events.filter(({ type }) => type === "node.start");
      expect(nodes).toHaveLength(3);
    }
  });

  test("are in the outer run's stream", async () => {
    const types: string[] = [];
    const outer = only(inside(linear(["a"])));
    for await (const { type, path = [] } of outer.stream(start("r"))) {
      if (type.startsWith("node.")) types.push(`${type} ${path.join("/")}`);
    }
    expect(types).toEqual([
      "node.start ",
      "node.start work/a",
      "node.complete work/a",
      "node.complete ",
    ]);
  });

  test("cost nothing without listeners", async () => {
    const inner = linear(["a"]);
    const outer = only(inside(inner));
    expect((await outer.execute(start("r"))).data.trail).toEqual(["a"]);
  });

  test("count as one run, one usage and the outer saves in metrics of both", async () => {
    const meter = metrics();
    const inner = new StateGraph<Trail>({ name: "inner", observer: meter })
      .addNode("pay", (state, context) => {
        context.ledger.usage({ costUsd: 2 });
        return state;
      })
      .setEntryPoint("pay")
      .setExitPoint("pay");
    const checkpoint = { store: new MemoryStore(), interval: 1 };
    await only(inside(inner), { name: "outer", observer: meter, checkpoint }).execute(start("r"));
    const { runs, usage, checkpoints, nodes } = meter.snapshot();
    expect(runs).toMatchObject({ started: 1, completed: 1, active: 0 });
    expect(usage.costUsd).toBe(2);
    expect(nodes.map(({ graph, node, completed }) => [graph, node, completed])).toEqual([
      ["inner", "pay", 1],
      ["outer", "work", 1],
    ]);
    // The start, two steps of the inner run, the end.
    expect(checkpoints.saves).toBe(4);
  });

  test("distinguish the runs of a list's items by their run", async () => {
    const runs = new Set<string>();
    const inner = linear(["a"]);
    const node = parallel<Trail, number, number>([1, 2], async (state, item, context) => {
      await inside(inner)(state, context);
      return item;
    });
    const outer = only(node);
    outer.on("node.start", ({ runId, path }) => {
      if (path !== undefined) runs.add(`${runId} ${path.join("/")}`);
    });
    await outer.execute(start("r"));
    expect(runs).toEqual(new Set(["r:0:work[0] work/a", "r:0:work[1] work/a"]));
  });
});

function observerOf(kind: "function" | "object") {
  const events: AnyEvent[] = [];
  const onEvent = (event: AnyEvent): unknown => events.push(event);
  return { events, given: kind === "function" ? onEvent : { onEvent } };
}

test("a State's own observer receives only the outer run", async () => {
  const types: string[] = [];
  const state = State.create<Trail>({ trail: [] }, { observer: ({ type }) => types.push(type) });
  await only(inside(linear(["a", "b"]))).execute(state);
  expect(types).toEqual(["state.create", "state.merge"]);
});
