import type { RunView } from "../../../api.js";
import type { Mark } from "../../parts/status.js";

/** A node as it is drawn. */
export interface DrawnNode {
  readonly id: string;
  readonly label: string;
  readonly kind: "node" | "task" | "start" | "end";
  readonly mark: Mark;
  readonly visits: number;
  /** The node of the graph that is selected with it; `""` for none. */
  readonly node: string;
  /** The group that it lies in. */
  readonly group: string | undefined;
}

/** An edge as it is drawn. */
export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  /** How often it was taken, as far as the steps show. */
  readonly taken: number;
  /** Whether it is the one that is taken next. */
  readonly next: boolean;
}

/** Nodes that belong together: the tasks of a layer, the nodes of a graph inside a node. */
export interface DrawnGroup {
  readonly id: string;
  readonly label: string;
  readonly mark: Mark;
  readonly visits: number;
  readonly node: string;
  readonly parent: string | undefined;
}

/** A graph as it is drawn, with how far the run is. */
export interface Drawing {
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
  readonly groups: readonly DrawnGroup[];
}

type Topology = NonNullable<RunView["topology"]>;
type Shape = Pick<Topology, "entry" | "nodes" | "edges" | "tasks">;

/** What is known of the nodes of graphs inside nodes, by the path that leads to them. */
type InnerMarks = ReadonlyMap<string, { readonly mark: Mark; readonly visits: number }>;

/** The drawing of a run. A run whose graph nobody knows is drawn from its steps. */
export function drawingOf(view: RunView): Drawing {
  const shape = view.topology ?? shapeOfSteps(view);
  if (shape.tasks !== undefined) return drawTasks(shape, view);
  return withInner(draw(shape, view), shape, innerMarks(view));
}

/** How far the graphs inside nodes are: their nodes are parts of the steps. */
function innerMarks(view: RunView): InnerMarks {
  const marks = new Map<string, { mark: Mark; visits: number }>();
  const { steps, unfinished } = view;
  for (const { node, items } of [...steps, ...(unfinished === null ? [] : [unfinished])]) {
    for (const { name, outcome } of items) {
      const key = pathKey([node, name]);
      const isDone = outcome === "completed";
      const visits = (marks.get(key)?.visits ?? 0) + Number(isDone);
      marks.set(key, { mark: isDone ? "completed" : "failed", visits });
    }
  }
  const path = unfinished === null ? [] : [unfinished.node, ...unfinished.inner];
  for (let length = 2; length <= path.length; length++) {
    const key = pathKey(path.slice(0, length));
    const mark = markOfNode(path[0] ?? "", view);
    marks.set(key, { mark, visits: marks.get(key)?.visits ?? 0 });
  }
  return marks;
}

/** What a node is doing. */
export function markOfNode(name: string, view: RunView): Mark {
  const { run, error, pauses, unfinished, next, visits } = view;
  if (run.status === "failed" && error?.node === name) return "failed";
  if (run.status === "paused" && pauses.some(({ node }) => node === name)) return "paused";
  const isNext = (next.node ?? unfinished?.node) === name && run.status !== "completed";
  if (isNext && run.status === "in_progress" && run.live !== false) return "in_progress";
  if (isNext) return "next";
  return (visits[name] ?? 0) > 0 ? "completed" : "none";
}

function draw(shape: Shape, view: RunView): Drawing {
  const { entry, nodes, edges } = shape;
  const { taken, next } = walked(view);
  const drawn: DrawnNode[] = nodes.map(({ name }) => ({
    id: idOf(name),
    label: name,
    kind: "node",
    mark: markOfNode(name, view),
    visits: view.visits[name] ?? 0,
    node: name,
    group: undefined,
  }));
  if (entry !== "") drawn.unshift(point("start"));
  if (edges.some(({ to }) => isEnd(to, nodes))) drawn.push(point("end"));
  const ended = view.run.status === "completed" ? view.run.node : undefined;
  const lines: DrawnEdge[] = edges.map(({ from, to, name = "" }) => {
    const end = isEnd(to, nodes);
    return {
      from: idOf(from),
      to: end ? "end" : idOf(to),
      label: name,
      taken: end ? Number(ended === from) : (taken.get(pair(from, to)) ?? 0),
      next: next === pair(from, to),
    };
  });
  if (entry !== "") {
    const begun = view.steps.length > 0 || view.unfinished !== null;
    lines.unshift({
      from: "start",
      to: idOf(entry),
      label: "",
      taken: Number(begun),
      next: !begun && view.next.node === entry,
    });
  }
  return { nodes: drawn, edges: lines, groups: [] };
}

/** Puts the graphs inside nodes in the place of those nodes: each is a group with its name. */
function withInner(drawing: Drawing, { nodes }: Shape, known: InnerMarks): Drawing {
  let whole = drawing;
  for (const { name, graph } of nodes) {
    const outer = whole.nodes.find(({ id }) => id === idOf(name));
    if (graph !== undefined && outer !== undefined)
      whole = openUp(whole, outer, graph, [name], known);
  }
  return whole;
}

function openUp(
  whole: Drawing,
  outer: DrawnNode,
  graph: Shape,
  path: readonly string[],
  known: InnerMarks,
): Drawing {
  const idIn = (name: string): string => `${outer.id}/${name}`;
  const group = `g:${outer.id}`;
  const names = new Set(graph.nodes.map(({ name }) => name));
  const last = graph.nodes.find(({ exit }) => exit) ?? graph.nodes.at(-1);
  const first = idIn(graph.entry);
  const end = idIn(last?.name ?? graph.entry);
  const inner: Drawing = {
    nodes: graph.nodes.map(({ name }) => {
      const { mark = "none", visits = 0 } = known.get(pathKey([...path, name])) ?? {};
      const { node } = outer;
      return { id: idIn(name), label: name, kind: "task", mark, visits, node, group };
    }),
    edges: graph.edges
      .filter(({ to }) => names.has(to))
      .map(({ from, to, name = "" }) => {
        const taken = Math.min(
          ...[from, to].map((one) => known.get(pathKey([...path, one]))?.visits ?? 0),
        );
        return { from: idIn(from), to: idIn(to), label: name, taken, next: false };
      }),
    groups: [],
  };
  const { label, mark, visits, node, group: parent } = outer;
  const opened: Drawing = {
    nodes: [...whole.nodes.filter(({ id }) => id !== outer.id), ...inner.nodes],
    edges: [
      ...whole.edges.map((edge) => ({
        ...edge,
        from: edge.from === outer.id ? end : edge.from,
        to: edge.to === outer.id ? first : edge.to,
      })),
      ...inner.edges,
    ],
    groups: [...whole.groups, { id: group, label, mark, visits, node, parent }],
  };
  return graph.nodes.reduce((all, { name, graph: deeper }) => {
    const nested = all.nodes.find(({ id }) => id === idIn(name));
    return deeper === undefined || nested === undefined
      ? all
      : openUp(all, nested, deeper, [...path, name], known);
  }, opened);
}

/** A path of nodes as the key of {@link InnerMarks}, as the record of a step names inner nodes. */
function pathKey(path: readonly string[]): string {
  return path.join("/");
}

/** A dag: its tasks in their layers, and what each depends on. */
function drawTasks({ nodes, tasks = [] }: Shape, view: RunView): Drawing {
  const depths = depthsOf(tasks);
  const layers = new Map(nodes.map(({ name }, index) => [index, name]));
  const isEager = nodes.length === 1 && new Set(depths.values()).size > 1;
  const layerOf = (name: string): string =>
    layers.get(isEager ? 0 : (depths.get(name) ?? 0)) ?? nodes[0]?.name ?? "";
  const done = new Set(view.tasks);
  const outcomes = new Map(view.unfinished?.items.map(({ name, outcome }) => [name, outcome]));
  const markOf = (name: string): Mark => {
    if (done.has(name) || outcomes.get(name) === "completed") return "completed";
    const layer = markOfNode(layerOf(name), view);
    if (outcomes.get(name) === "failed") return "failed";
    if (layer === "failed") return outcomes.has(name) ? "failed" : "next";
    return layer === "completed" ? "completed" : layer;
  };
  return {
    nodes: tasks.map(({ name }) => ({
      id: idOf(name),
      label: name,
      kind: "task",
      mark: markOf(name),
      visits: Number(done.has(name)),
      node: layerOf(name),
      group: isEager ? undefined : `g:${layerOf(name)}`,
    })),
    edges: tasks.flatMap(({ name, dependsOn }) =>
      dependsOn.map((from) => ({
        from: idOf(from),
        to: idOf(name),
        label: "",
        taken: Number(done.has(from) && done.has(name)),
        next: done.has(from) && ["next", "in_progress"].includes(markOf(name)),
      })),
    ),
    groups: isEager
      ? []
      : nodes.map(({ name }) => ({
          id: `g:${name}`,
          label: name,
          mark: markOfNode(name, view),
          visits: view.visits[name] ?? 0,
          node: name,
          parent: undefined,
        })),
  };
}

/** How many tasks are before each one, on the longest way. */
function depthsOf(tasks: NonNullable<Shape["tasks"]>): ReadonlyMap<string, number> {
  const needs = new Map(tasks.map(({ name, dependsOn }) => [name, dependsOn]));
  const depths = new Map<string, number>();
  const depth = (name: string, above: readonly string[]): number => {
    const known = depths.get(name);
    if (known !== undefined || above.includes(name)) return known ?? 0;
    const before = (needs.get(name) ?? []).filter((need) => needs.has(need));
    const own = Math.max(-1, ...before.map((need) => depth(need, [...above, name]))) + 1;
    depths.set(name, own);
    return own;
  };
  for (const { name } of tasks) depth(name, []);
  return depths;
}

/** Which edges were taken, and which one is next. */
function walked(view: RunView): { taken: ReadonlyMap<string, number>; next: string | undefined } {
  const taken = new Map<string, number>();
  const add = (from: string, to: string): void => {
    taken.set(pair(from, to), (taken.get(pair(from, to)) ?? 0) + 1);
  };
  for (const [index, step] of view.steps.entries()) {
    const before = view.steps[index - 1];
    if (before !== undefined && before.step === step.step - 1) add(before.node, step.node);
  }
  const last = view.steps.at(-1);
  const current = view.unfinished?.node ?? view.next.node ?? undefined;
  if (last === undefined || current === undefined || view.run.status === "completed") {
    return { taken, next: undefined };
  }
  const isAtWork = ["failed", "paused", "in_progress"].includes(markOfNode(current, view));
  if (isAtWork) add(last.node, current);
  return { taken, next: isAtWork ? undefined : pair(last.node, current) };
}

/** What the steps themselves show of a graph that nobody knows. */
function shapeOfSteps({ steps, next }: RunView): Shape {
  const names = [...new Set([...steps.map(({ node }) => node), ...(next.node ? [next.node] : [])])];
  const pairs = new Map<string, { from: string; to: string }>();
  for (const [index, { node }] of steps.entries()) {
    const to = steps[index + 1]?.node ?? next.node;
    if (to) pairs.set(pair(node, to), { from: node, to });
  }
  return {
    entry: names[0] ?? "",
    nodes: names.map((name) => ({ name, phase: "", exit: false })),
    edges: [...pairs.values()].map((ends) => ({ ...ends, conditional: false })),
  };
}

function point(kind: "start" | "end"): DrawnNode {
  return { id: kind, label: kind, kind, mark: "none", visits: 0, node: "", group: undefined };
}

/** Whether an edge leads out of the graph: `END` is no node. */
function isEnd(to: string, nodes: Shape["nodes"]): boolean {
  return !nodes.some(({ name }) => name === to);
}

function idOf(name: string): string {
  return `n:${name}`;
}

function pair(from: string, to: string): string {
  return JSON.stringify([from, to]);
}
