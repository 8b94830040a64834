import { describe, expect, test } from "vitest";
import { GraphError, type NodeFunction, type Predicate, State, StateGraph } from "waymark";
import { mark, start, type Trail, thrown } from "../graphs.js";

type Graph = StateGraph<Trail, string>;

/** Two nodes, not joined. */
function twoNodes(): Graph {
  return new StateGraph<Trail, string>().addNode("a", mark).addNode("b", mark);
}

/** What a caller without types could pass. */
const wrong = <T>(value: unknown): T => value as T;

describe("what building a graph refuses", () => {
  test.each<[what: string, build: (graph: Graph) => unknown, code: string, says: string]>([
    ["a node without a name", (g) => g.addNode("", mark), "GRAPH_NODE_NAME", '""'],
    ["a name that is no string", (g) => g.addNode(wrong<string>(7), mark), "GRAPH_NODE_NAME", "7"],
    [
      "a node without a function",
      (g) => g.addNode("c", wrong<NodeFunction<Trail>>(undefined)),
      "GRAPH_NODE_FUNCTION",
      '"c"',
    ],
    [
      "a node that is an object",
      (g) => g.addNode("c", wrong<NodeFunction<Trail>>({})),
      "GRAPH_NODE_FUNCTION",
      "an object",
    ],
    ["a second node of a name", (g) => g.addNode("a", mark), "GRAPH_NODE_DUPLICATE", '"a"'],
    ["an edge from nowhere", (g) => g.addEdge("", "b"), "GRAPH_NODE_NAME", "addEdge"],
    ["an edge to nowhere", (g) => g.addEdge("a", ""), "GRAPH_NODE_NAME", "addEdge"],
    ["an edge from an unknown node", (g) => g.addEdge("x", "b"), "GRAPH_NODE_UNKNOWN", '"a", "b"'],
    ["an edge to an unknown node", (g) => g.addEdge("a", "x"), "GRAPH_NODE_UNKNOWN", '"x"'],
    ["an edge to no string", (g) => g.addEdge("a", wrong(null)), "GRAPH_NODE_UNKNOWN", "null"],
    [
      "a predicate that is no function",
      (g) => g.addEdge("a", "b", wrong(true)),
      "GRAPH_PREDICATE",
      "true",
    ],
    [
      "an edge name that is no string",
      (g) => g.addEdge("a", "b", undefined, wrong(1)),
      "GRAPH_PREDICATE",
      "1",
    ],
    ["an empty entry point", (g) => g.setEntryPoint(""), "GRAPH_NODE_NAME", "setEntryPoint"],
    ["an unknown entry point", (g) => g.setEntryPoint("x"), "GRAPH_NODE_UNKNOWN", '"x"'],
    [
      "a second entry point",
      (g) => g.setEntryPoint("a").setEntryPoint("b"),
      "GRAPH_ENTRY_DUPLICATE",
      '"a"',
    ],
    [
      "the same entry point again",
      (g) => g.setEntryPoint("a").setEntryPoint("a"),
      "GRAPH_ENTRY_DUPLICATE",
      '"a"',
    ],
    ["an empty exit point", (g) => g.setExitPoint(""), "GRAPH_NODE_NAME", "setExitPoint"],
    ["an unknown exit point", (g) => g.setExitPoint("x"), "GRAPH_NODE_UNKNOWN", '"x"'],
  ])("%s", (_what, build, code, says) => {
    const error = thrown(() => build(twoNodes()), GraphError);
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  test("an edge in a graph without nodes says that there are none yet", () => {
    const error = thrown(() => new StateGraph<Trail, string>().addEdge("a", "b"), GraphError);
    expect(error.message).toContain("none yet");
  });
});

test("a refused call leaves the graph as it was", () => {
  const graph = twoNodes();
  const before = graph.fingerprint;
  thrown(() => graph.addNode("a", mark), GraphError);
  thrown(() => graph.addEdge("a", "x"), GraphError);
  thrown(() => graph.addEdge("a", "b", wrong<Predicate<Trail>>("no")), GraphError);
  expect(graph.fingerprint).toBe(before);
});

test("building returns the graph itself, so calls can be chained or written one by one", () => {
  const graph = twoNodes();
  expect(graph.addNode("c", mark)).toBe(graph);
  expect(graph.addEdge("a", "b")).toBe(graph);
  expect(graph.setEntryPoint("a")).toBe(graph);
  expect(graph.setExitPoint("b")).toBe(graph);
});

test("several edges from one node are tried in the order they were added", async () => {
  const asked: string[] = [];
  const says =
    (name: string, answer: boolean): Predicate<Trail> =>
    () => {
      asked.push(name);
      return answer;
    };
  const graph = new StateGraph<Trail, string>();
  for (const name of ["a", "b", "c", "d"]) graph.addNode(name, mark);
  graph
    .addEdge("a", "b", says("b", false))
    .addEdge("a", "c", says("c", true))
    .addEdge("a", "d", says("d", true));
  graph.setEntryPoint("a").setExitPoint("b").setExitPoint("c").setExitPoint("d");
  const final = await graph.execute(start());
  expect(final.checkpointNode).toBe("c");
  expect(asked).toEqual(["b", "c"]);
});

test("node names that JavaScript objects have already are names like any other", async () => {
  const graph = new StateGraph<Trail, string>()
    .addNode("__proto__", mark)
    .addNode("constructor", mark)
    .addEdge("__proto__", "constructor")
    .setEntryPoint("__proto__")
    .setExitPoint("constructor");
  const final = await graph.execute(start());
  expect(final.data.trail).toEqual(["__proto__", "constructor"]);
  expect(Object.entries(final.visits)).toEqual([
    ["__proto__", 1],
    ["constructor", 1],
  ]);
});

test("execute refuses anything but a State", async () => {
  const graph = twoNodes().addEdge("a", "b").setEntryPoint("a").setExitPoint("b");
  for (const value of [undefined, null, {}, { data: {} }, "state"]) {
    await expect(graph.execute(wrong(value))).rejects.toMatchObject({ code: "GRAPH_STATE" });
    await expect(graph.resumeOrStart(wrong(value))).rejects.toMatchObject({ code: "GRAPH_STATE" });
  }
  await expect(graph.execute(State.create<Trail>({ trail: [] }))).resolves.toBeInstanceOf(State);
});
