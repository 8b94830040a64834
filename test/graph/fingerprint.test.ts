import { expect, test } from "vitest";
import { always, type NodeFunction, type Predicate, StateGraph } from "waymark";
import { mark, type Trail } from "../graphs.js";

type Edge = readonly [
  from: string,
  to: string,
  predicate?: Predicate<Trail> | undefined,
  name?: string,
];

interface Shape {
  readonly nodes: readonly string[];
  readonly edges: readonly Edge[];
  readonly entry: string;
  readonly exits: readonly string[];
  readonly run?: NodeFunction<Trail>;
}

const base: Shape = {
  nodes: ["a", "b", "c"],
  edges: [
    ["a", "b", always],
    ["a", "c"],
    ["b", "c"],
  ],
  entry: "a",
  exits: ["c"],
};

function fingerprint(changes: Partial<Shape> = {}, name = "graph"): string {
  const { nodes, edges, entry, exits, run = mark } = { ...base, ...changes };
  const graph = new StateGraph<Trail, string>({ name });
  for (const node of nodes) graph.addNode(node, run);
  for (const edge of edges) graph.addEdge(...edge);
  graph.setEntryPoint(entry);
  for (const exit of exits) graph.setExitPoint(exit);
  return graph.fingerprint;
}

test("is the same text for the same shape, in this version and the next", () => {
  expect(fingerprint()).toBe("97b09fc48a82cf3e");
  expect(fingerprint()).toMatch(/^[0-9a-f]{16}$/);
});

test.each<[what: string, changes: Partial<Shape>]>([
  ["the order nodes were added in", { nodes: ["c", "b", "a"] }],
  [
    "the order edges of different nodes were added in",
    {
      edges: [
        ["b", "c"],
        ["a", "b", always],
        ["a", "c"],
      ],
    },
  ],
  ["what the nodes do", { run: (state) => state }],
  [
    "what the predicates say",
    {
      edges: [
        ["a", "b", () => false],
        ["a", "c"],
        ["b", "c"],
      ],
    },
  ],
])("does not depend on %s", (_what, changes) => {
  expect(fingerprint(changes)).toBe(fingerprint());
});

test("does not depend on the graph's name", () => {
  expect(fingerprint({}, "other")).toBe(fingerprint());
});

const [first, second, third] = base.edges as [Edge, Edge, Edge];

test.each<[what: string, changes: Partial<Shape>]>([
  ["a node's name", { nodes: ["a", "b", "c", "d"] }],
  ["an edge more", { edges: [...base.edges, ["c", "a"]] }],
  ["an edge fewer", { edges: [first, second] }],
  ["an edge's target", { edges: [first, second, ["b", "a"]] }],
  ["the order of one node's edges", { edges: [second, first, third] }],
  ["an edge's name", { edges: [first, second, ["b", "c", undefined, "then"]] }],
  ["whether an edge has a predicate", { edges: [first, second, ["b", "c", always]] }],
  ["the entry point", { entry: "b" }],
  ["another exit point", { exits: ["b"] }],
  ["one exit point more", { exits: ["b", "c"] }],
])("changes with %s", (_what, changes) => {
  expect(fingerprint(changes)).not.toBe(fingerprint());
});

test("names can't be put together to look like another graph", () => {
  const one = fingerprint({ nodes: ["a", "b", 'c","d'], edges: [], exits: [] });
  const other = fingerprint({ nodes: ["a", "b", "c", "d"], edges: [], exits: [] });
  expect(one).not.toBe(other);
});

test("follows the graph while it is being built", () => {
  const graph = new StateGraph<Trail, string>();
  const seen = [graph.fingerprint];
  seen.push(graph.addNode("a", mark).fingerprint);
  seen.push(graph.addEdge("a", "a", always).fingerprint);
  seen.push(graph.setEntryPoint("a").fingerprint);
  seen.push(graph.setExitPoint("a").fingerprint);
  expect(new Set(seen).size).toBe(seen.length);
});
