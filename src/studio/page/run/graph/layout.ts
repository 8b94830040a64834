import { Graph, layout } from "@dagrejs/dagre";
import type { Drawing } from "./model.js";

/** Where something is drawn: its top left corner and its size. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** An edge on the plane. */
interface Line {
  /** The `d` of an SVG path. */
  readonly path: string;
  /** The middle of its label. */
  readonly label: { readonly x: number; readonly y: number } | undefined;
}

/** A drawing on the plane. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly boxes: ReadonlyMap<string, Box>;
  /** In the order of the drawing's edges. */
  readonly lines: readonly Line[];
}

interface Point {
  readonly x: number;
  readonly y: number;
}

const NODE_HEIGHT = 32;
const MARGIN = 16;
const GROUP_HEAD = 24;

/** Lays a drawing out in the direction that fits a room of these proportions best. */
export function layoutOf(drawing: Drawing, room: { width: number; height: number }): Layout {
  const both = (["LR", "TB"] as const).map((direction) => place(drawing, direction));
  const scale = ({ width, height }: Layout): number =>
    Math.min(1, room.width / width, room.height / height);
  const [across, down] = both as [Layout, Layout];
  return scale(down) > scale(across) ? down : across;
}

function place(drawing: Drawing, direction: "LR" | "TB"): Layout {
  const graph = new Graph({ directed: true, multigraph: true, compound: true });
  graph.setGraph({
    rankdir: direction,
    nodesep: direction === "LR" ? 20 : 28,
    ranksep: direction === "LR" ? 44 : 36,
    edgesep: 16,
    marginx: MARGIN,
    marginy: MARGIN,
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, parent } of drawing.groups) {
    graph.setNode(id, {});
    if (parent !== undefined) graph.setParent(id, parent);
  }
  for (const { id, label, kind, visits, group } of drawing.nodes) {
    const isPoint = kind === "start" || kind === "end";
    const often = visits > 1 ? 8 + widthOf(`×${"0".repeat(digits(visits))}`) : 0;
    const width = isPoint ? 12 : Math.min(220, 44 + widthOf(label)) + often;
    graph.setNode(id, { width, height: isPoint ? 12 : NODE_HEIGHT });
    if (group !== undefined) graph.setParent(id, group);
  }
  for (const [index, { from, to, label }] of drawing.edges.entries()) {
    const size = label === "" ? {} : { width: widthOf(label) + 8, height: 16, labelpos: "c" };
    graph.setEdge(from, to, size, String(index));
  }
  layout(graph);
  return readOut(drawing, graph);
}

function readOut(drawing: Drawing, graph: Graph): Layout {
  const boxes = new Map<string, Box>();
  for (const { id } of [...drawing.groups, ...drawing.nodes]) {
    const { x = 0, y = 0, width = 0, height = 0 } = graph.node(id) as Partial<Box>;
    boxes.set(id, { x: x - width / 2, y: y - height / 2, width, height });
  }
  for (const { id } of drawing.groups) {
    const box = boxes.get(id);
    // Room for the group's name above what is in it.
    if (box) boxes.set(id, { ...box, y: box.y - GROUP_HEAD, height: box.height + GROUP_HEAD });
  }
  const lines = drawing.edges.map(({ from, to, label }, index): Line => {
    const edge = graph.edge({ v: from, w: to, name: String(index) }) as {
      points?: readonly Point[];
      x?: number;
      y?: number;
    };
    const { x, y, points = [] } = edge;
    const hasLabel = label !== "" && x !== undefined && y !== undefined;
    return { path: smooth(points), label: hasLabel ? { x, y } : undefined };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const top = Math.min(0, ...[...boxes.values()].map(({ y }) => y - 4));
  return top === 0 ? { width, height, boxes, lines } : lower({ width, height, boxes, lines }, -top);
}

/** Moves all of it down, where the name of a group would be above the edge. */
function lower({ width, height, boxes, lines }: Layout, by: number): Layout {
  return {
    width,
    height: height + by,
    boxes: new Map([...boxes].map(([id, box]) => [id, { ...box, y: box.y + by }])),
    lines: lines.map(({ path, label }) => ({
      path: path.replace(/(-?[\d.]+),(-?[\d.]+)/g, (_, x, y) => `${x},${Number(y) + by}`),
      label: label && { x: label.x, y: label.y + by },
    })),
  };
}

/** A line through points, with its corners rounded. */
function smooth(points: readonly Point[]): string {
  const [first, ...rest] = points;
  const last = rest.pop();
  if (first === undefined || last === undefined) return "";
  const at = ({ x, y }: Point): string => `${round(x)},${round(y)}`;
  const parts = [`M${at(first)}`];
  for (const [index, point] of rest.entries()) {
    const next = rest[index + 1] ?? last;
    parts.push(`Q${at(point)} ${at({ x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 })}`);
  }
  parts.push(`L${at(last)}`);
  return parts.join(" ");
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** How much room a count takes; a node grows only when it needs more. */
export function digits(count: number): number {
  return String(count).length;
}

let context: CanvasRenderingContext2D | null | undefined;

function widthOf(text: string): number {
  context ??= document.createElement("canvas").getContext("2d");
  if (context === null) return text.length * 7;
  context.font = "13px system-ui, sans-serif";
  return context.measureText(text.slice(0, 60)).width;
}
