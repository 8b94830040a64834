import { expect, test } from "vitest";
import { GraphError, StateGraph } from "waymark";
import { linear, mark, start, type Trail, thrown } from "../graphs.js";

function nodes(...names: readonly string[]): StateGraph<Trail, string> {
  const graph = new StateGraph<Trail, string>();
  for (const name of names) graph.addNode(name, mark);
  return graph;
}

const incomplete: [
  what: string,
  graph: () => StateGraph<Trail, string>,
  code: string,
  says: string,
][] = [
  ["no nodes", () => nodes(), "GRAPH_NO_NODES", "addNode"],
  ["no entry point", () => nodes("a").setExitPoint("a"), "GRAPH_NO_ENTRY", "setEntryPoint"],
  [
    "no exit point",
    () => nodes("a").setEntryPoint("a").addEdge("a", "a"),
    "GRAPH_NO_EXIT",
    "setExitPoint",
  ],
  [
    "a node that can't be reached",
    () => nodes("a", "island").setEntryPoint("a").setExitPoint("a").setExitPoint("island"),
    "GRAPH_NODE_UNREACHABLE",
    '"island"',
  ],
  [
    "a node that leads nowhere and is no exit",
    () =>
      nodes("a", "b", "end")
        .addEdge("a", "b")
        .addEdge("a", "end")
        .setEntryPoint("a")
        .setExitPoint("end"),
    "GRAPH_NODE_DEAD_END",
    '"b"',
  ],
];

test.each(incomplete)("refuses a graph with %s", async (_what, graph, code, says) => {
  const error = thrown(() => graph().validate(), GraphError);
  expect(error.code).toBe(code);
  expect(error.message).toContain(says);
});

test.each(incomplete)("runs nothing of a graph with %s", async (_what, graph, code) => {
  await expect(graph().execute(start())).rejects.toMatchObject({ code });
  await expect(graph().resume("some-run")).rejects.toMatchObject({ code });
  await expect(graph().resumeOrStart(start())).rejects.toMatchObject({ code });
});

test("all problems are listed in one error, under the code of the first", () => {
  const error = thrown(() => nodes("a", "b").addEdge("a", "a").validate(), GraphError);
  expect(error.code).toBe("GRAPH_NO_ENTRY");
  expect(error.message).toMatch(/no entry point.*never ends.*"b" has no outgoing edge/);
});

test("an exit point may have edges, and a node may be reached over many", () => {
  const graph = linear(["a", "b", "c", "d"]).addEdge("d", "a").addEdge("b", "b");
  expect(graph.validate()).toBe(graph);
});

test("a graph that was valid is looked at again after a change", () => {
  const graph = linear(["a", "b"]).validate();
  graph.addNode("late", mark);
  expect(thrown(() => graph.validate(), GraphError).code).toBe("GRAPH_NODE_UNREACHABLE");
  graph.addEdge("a", "late");
  expect(thrown(() => graph.validate(), GraphError).code).toBe("GRAPH_NODE_DEAD_END");
  graph.setExitPoint("late");
  expect(graph.validate()).toBe(graph);
});

test("a graph of one node that is entry and exit is whole", async () => {
  const final = await nodes("only").setEntryPoint("only").setExitPoint("only").execute(start());
  expect(final.data.trail).toEqual(["only"]);
});
