import { expect, test } from "vitest";
import { always, ConfigError, GraphError, type State, StateGraph } from "waymark";
import { cycle, linear, mark, RecordingStore, start, type Trail, thrown } from "../graphs.js";

/** The classes a diagram gives its nodes, by node id; no node has two. */
function classes(diagram: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of diagram.split("\n").filter((line) => line.startsWith("  class "))) {
    const [, ids, name = ""] = /^ {2}class (n\d+(?:,n\d+)*) (\w+)$/.exec(line) ?? [];
    if (ids === undefined) throw new Error(`this is no class statement: ${line}`);
    for (const id of ids.split(",")) {
      expect(found).not.toHaveProperty(id);
      found[id] = name;
    }
  }
  return found;
}

test("draws entry, exits, edges and their names", () => {
  const graph = new StateGraph<Trail>()
    .addNode("draft", mark)
    .addNode("review", mark)
    .addNode("publish", mark)
    .addEdge("draft", "review")
    .addEdge("review", "draft", always, "poor")
    .addEdge("review", "publish", undefined, "good")
    .setEntryPoint("draft")
    .setExitPoint("publish");
  expect(graph.toMermaid()).toBe(
    [
      "flowchart TD",
      "  start([start])",
      '  n0["draft"]',
      '  n1["review"]',
      '  n2(["publish"])',
      "  start --> n0",
      "  n0 --> n1",
      '  n1 -.->|"poor"| n0',
      '  n1 -->|"good"| n2',
      "",
    ].join("\n"),
  );
});

test("draws what there is of a graph that is not whole yet", () => {
  expect(new StateGraph<Trail>().toMermaid()).toBe("flowchart TD\n");
  expect(new StateGraph<Trail>().addNode("a", mark).toMermaid()).toBe('flowchart TD\n  n0["a"]\n');
  const graph = new StateGraph<Trail>().addNode("a", mark).setEntryPoint("a");
  expect(classes(graph.toMermaid({ state: start() }))).toEqual({ n0: "next" });
  const unjoined = new StateGraph<Trail>().addNode("a", mark);
  expect(classes(unjoined.toMermaid({ state: start() }))).toEqual({});
});

test.each([
  'say "hi"',
  "a]) --> n9[x",
  "two\nlines\r\n%% no comment",
  "line\u2028%% no comment",
  "<script>alert(1)</script>",
  "#quot; & #35;",
  "%%{init: {'theme': 'x'}}%%",
  "a | b",
  "`code` \\ {braces}",
  "end",
  "class",
])("writes the label %j so that it stays one label", (name) => {
  const graph = new StateGraph<Trail, string>()
    .addNode(name, mark)
    .addEdge(name, name, always, name)
    .setEntryPoint(name)
    .setExitPoint(name);
  const lines = graph.toMermaid().split("\n");
  const quoted =
    '"[^"<>&|\\\\\\[\\](){}`\\s\u2028\u2029]*(?: [^"<>&|\\\\\\[\\](){}`\\s\u2028\u2029]*)*"';
  expect(lines[2]).toMatch(new RegExp(`^ {2}n0\\(\\[${quoted}\\]\\)$`));
  expect(lines[4]).toMatch(new RegExp(`^ {2}n0 -\\.->\\|${quoted}\\| n0$`));
  expect(lines).toHaveLength(6);
  const text = lines[2]?.slice("  n0([".length + 1, -3) ?? "";
  const read = text.replace(/#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
  expect(read).toBe(name);
});

test("with a State, shows what is done and what comes next", async () => {
  const store = new RecordingStore();
  const graph = linear(["a", "b", "c"], { checkpoint: { store, interval: 1 } });
  expect(classes(graph.toMermaid({ state: start() }))).toEqual({ n0: "next" });
  await graph.execute(start());
  const shown = store.saved.map((state) => classes(graph.toMermaid({ state })));
  expect(shown).toEqual([
    { n0: "next" },
    { n0: "done", n1: "next" },
    { n0: "done", n1: "done", n2: "next" },
    { n0: "done", n1: "done", n2: "done" },
  ]);
});

test("a node that comes next again is next, not done", async () => {
  const store = new RecordingStore();
  const graph = cycle(3, { checkpoint: { store, interval: 1 } });
  await graph.execute(start());
  const state = store.saved[1];
  expect(classes(graph.toMermaid({ state }))).toEqual({ n0: "next" });
});

test("at an exit point nothing is next, even if it has edges", async () => {
  const graph = linear(["a", "b"]).addEdge("b", "a");
  const state = await graph.execute(start());
  expect(classes(graph.toMermaid({ state }))).toEqual({ n0: "done", n1: "done" });
});

test("when no edge matches, nothing is next", async () => {
  const graph = new StateGraph<Trail>()
    .addNode("a", mark)
    .addNode("b", mark)
    .addEdge("a", "b", () => false)
    .setEntryPoint("a")
    .setExitPoint("b");
  const state = start().setCheckpointNode("a");
  expect(classes(graph.toMermaid({ state }))).toEqual({});
  const deadEnd = new StateGraph<Trail>().addNode("a", mark).setEntryPoint("a");
  expect(classes(deadEnd.toMermaid({ state }))).toEqual({});
});

test("refuses a State of a node that is not there, and what is no State", () => {
  const graph = linear(["a", "b"]);
  const state = start().setCheckpointNode("gone");
  expect(thrown(() => graph.toMermaid({ state }), GraphError).code).toBe("GRAPH_NODE_UNKNOWN");
  const wrong = { state: {} } as { state: State<Trail> };
  expect(thrown(() => graph.toMermaid(wrong), ConfigError).option).toBe("options.state");
});
