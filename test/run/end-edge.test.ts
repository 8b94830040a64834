import { describe, expect, test } from "vitest";
import { END, GraphError, type NodeFunction, pause, StateGraph, subgraph } from "waymark";
import { mark, RecordingStore, start, type Trail, thrown } from "../graphs.js";

/** `work` runs until the trail has `rounds` entries, then the run ends by an edge. */
function ending(rounds: number, store = new RecordingStore(), preserve = true) {
  const ran: string[] = [];
  const node: NodeFunction<Trail> = (state, context) => {
    ran.push(context.node);
    return mark(state, context);
  };
  const graph = new StateGraph<Trail>({ checkpoint: { store, interval: 1, preserve } })
    .addNode("work", node)
    .addEdge("work", END, (state) => state.data.trail.length >= rounds, "enough")
    .addEdge("work", "work")
    .setEntryPoint("work");
  return { graph, store, ran };
}

describe("an edge to END", () => {
  test("ends the run if its predicate matches", async () => {
    const { graph, store, ran } = ending(3);
    const final = await graph.execute(start("r"));
    expect(final).toMatchObject({ status: "completed", step: 3, checkpointNode: "work" });
    expect(final.nextNode).toBeUndefined();
    expect(ran).toHaveLength(3);
    expect(store.log).toEqual([
      "start:@0",
      "interval:work@1",
      "interval:work@2",
      "complete:work@3",
    ]);
    expect(await store.load("r")).toMatchObject({ status: "completed", nextNode: undefined });
  });

  test("ends the run without a predicate, after the edges added before it", async () => {
    const graph = new StateGraph<Trail>()
      .addNode("a", mark)
      .addNode("b", mark)
      .addEdge("a", "b", (state) => state.data.trail.length < 2)
      .addEdge("a", END)
      .addEdge("b", "a")
      .setEntryPoint("a");
    const final = await graph.execute(start());
    expect(final.data.trail).toEqual(["a", "b", "a"]);
    expect(final.status).toBe("completed");
  });

  test("may be combined with exit points", async () => {
    const build = () =>
      new StateGraph<Trail>()
        .addNode("a", mark)
        .addNode("b", mark)
        .addEdge("a", END, (state) => state.data.trail[0] === "stop")
        .addEdge("a", "b")
        .setEntryPoint("a")
        .setExitPoint("b");
    const early = await build().execute(start().set("trail", ["stop"]));
    expect(early).toMatchObject({ status: "completed", checkpointNode: "a" });
    const late = await build().execute(start());
    expect(late).toMatchObject({ status: "completed", checkpointNode: "b" });
  });

  test("is emitted like any other edge, before the end of the run", async () => {
    const { graph } = ending(1);
    const events: [string, unknown][] = [];
    graph.on("*", ({ type, data }) => events.push([type, data]));
    await graph.execute(start());
    expect(events.slice(-4)).toMatchObject([
      ["checkpoint.save", { reason: "complete" }],
      ["edge.evaluate", { from: "work", to: END, name: "enough", result: true }],
      ["edge.transition", { from: "work", to: END, name: "enough" }],
      ["graph.complete", { exitPoint: "work", step: 1 }],
    ]);
  });

  test("ends a run and removes its checkpoints", async () => {
    const { graph, store } = ending(2, new RecordingStore(), false);
    expect(await graph.execute(start("r"))).toMatchObject({ status: "completed", sequence: 0 });
    expect(await store.list()).toEqual([]);
  });

  test("ends a graph inside a node", async () => {
    const inner = ending(2).graph;
    const graph = new StateGraph<Trail>()
      .addNode("outer", subgraph(inner, { in: ({ data }) => data, out: (_, { data }) => data }))
      .addEdge("outer", END)
      .setEntryPoint("outer");
    expect((await graph.execute(start())).data.trail).toEqual(["work", "work"]);
  });
});

describe("a run that ended by an edge", () => {
  test("is returned unchanged by a resume, and nothing runs", async () => {
    const { graph, ran, store } = ending(2);
    const final = await graph.execute(start("r"));
    const types: string[] = [];
    graph.on("*", ({ type }) => types.push(type));
    const again = await graph.resume("r");
    expect(again.toJSON()).toEqual(final.toJSON());
    expect(await graph.resumeOrStart(start("r"))).toMatchObject({ status: "completed", step: 2 });
    expect(ran).toHaveLength(2);
    expect(store.saved).toHaveLength(3);
    expect(types).toEqual(["checkpoint.load", "checkpoint.load"]);
  });

  test("can be rolled back and resumes from there", async () => {
    const { graph, ran } = ending(2);
    await graph.execute(start("r"));
    const back = await graph.rollback("r", 1);
    expect(back).toMatchObject({ status: "in_progress", step: 1, nextNode: "work" });
    expect(await graph.resume("r")).toMatchObject({ status: "completed", step: 2 });
    expect(ran).toHaveLength(3);
  });

  test("stays ended when rolled back to its end", async () => {
    const { graph, ran } = ending(2);
    await graph.execute(start("r"));
    const back = await graph.rollback("r", 2);
    expect(back).toMatchObject({ status: "completed", reason: "rollback", nextNode: undefined });
    expect(await graph.resume("r")).toMatchObject({ status: "completed", step: 2 });
    expect(ran).toHaveLength(2);
  });

  test("stays ended in a fork, unless the changes match another edge", async () => {
    const { graph, ran } = ending(2);
    await graph.execute(start("r"));
    const same = await graph.fork("r", 2);
    expect(same).toMatchObject({ status: "completed", nextNode: undefined });
    const other = await graph.fork("r", 2, { trail: ["new"] });
    expect(other).toMatchObject({ status: "in_progress", nextNode: "work" });
    expect(ran).toHaveLength(2);
    expect((await graph.resume(other.runId)).data.trail).toEqual(["new", "work"]);
  });

  test("resumes to its end after a pause in the last node", async () => {
    const graph = new StateGraph<Trail>({
      checkpoint: { store: new RecordingStore(), interval: 1, preserve: true },
    })
      .addNode("ask", (state) => pause(state, { reason: "review", ask: "ok?", into: "trail" }))
      .addEdge("ask", END, (state) => state.data.trail[0] === "yes")
      .addEdge("ask", "ask")
      .setEntryPoint("ask");
    expect(await graph.execute(start("r"))).toMatchObject({ status: "paused", nextNode: "ask" });
    expect(await graph.resume("r", { input: ["no"] })).toMatchObject({ status: "paused", step: 2 });
    const final = await graph.resume("r", { input: ["yes"] });
    expect(final).toMatchObject({ status: "completed", step: 2, data: { trail: ["yes"] } });
    expect(final.nextNode).toBeUndefined();
  });

  test("ends even if the process died between its last node and the end", async () => {
    const { graph, store } = ending(2);
    store.beforeSave = ({ reason }) => {
      if (reason === "complete") throw new Error("power cut");
    };
    await graph.execute(start("r")).catch(() => {});
    store.beforeSave = () => {};
    expect(await store.load("r")).toMatchObject({ status: "in_progress", step: 1 });
    expect(await graph.resume("r")).toMatchObject({ status: "completed", step: 2 });
  });
});

describe("a graph that ends by END", () => {
  test("is complete without an exit point", () => {
    expect(ending(1).graph.validate()).toBeInstanceOf(StateGraph);
  });

  test("draws the end, unlike other graphs", () => {
    const { graph } = ending(1);
    expect(graph.toMermaid().split("\n")).toEqual(
      expect.arrayContaining(["  end_([end])", '  n0 -.->|"enough"| end_']),
    );
    const plain = new StateGraph<Trail>().addNode("a", mark).setEntryPoint("a").setExitPoint("a");
    expect(plain.toMermaid()).not.toContain("end_");
  });

  test("has a different fingerprint than one with an exit point there", () => {
    const byEdge = new StateGraph<Trail>().addNode("a", mark).addEdge("a", END).setEntryPoint("a");
    const byExit = new StateGraph<Trail>().addNode("a", mark).setEntryPoint("a").setExitPoint("a");
    expect(byEdge.fingerprint).not.toBe(byExit.fingerprint);
  });

  test("can't have a node of that name, nor an edge from it", () => {
    const graph = new StateGraph<Trail, string>().addNode("a", mark);
    expect(thrown(() => graph.addNode("__end__", mark), GraphError)).toMatchObject({
      code: "GRAPH_NODE_NAME",
      message: expect.stringContaining('"__end__"'),
    });
    expect(thrown(() => graph.addEdge(END, "a"), GraphError).code).toBe("GRAPH_NODE_UNKNOWN");
    expect(thrown(() => graph.setExitPoint(END), GraphError).code).toBe("GRAPH_NODE_UNKNOWN");
  });
});
