import { Graph, layout } from "@dagrejs/dagre";
import { folded } from "./fold.js";
import type { Drawing } from "./model.js";
import {
  type Box,
  GROUP_HEAD,
  type Layout,
  type Line,
  MARGIN,
  moved,
  type Point,
  READABLE,
  sizeOf,
  widthOf,
} from "./plane.js";

/**
 * Lays a drawing out so that its names can be read in a room of this size: in the direction that fits best, in rows if
 * neither fits, or else in one that has to be moved up and down only.
 */
export function layoutOf(drawing: Drawing, room: { width: number; height: number }): Layout {
  const scale = ({ width, height }: Layout): number =>
    Math.min(1, room.width / width, room.height / height);
  const best = (layouts: readonly Layout[]): Layout =>
    layouts.reduce((one, other) => (scale(other) > scale(one) ? other : one));
  const both = (["LR", "TB"] as const).map((direction) => place(drawing, direction));
  const straight = best(both);
  if (scale(straight) >= READABLE) return straight;
  const rows = folded(drawing, room);
  const narrow = [...(rows ? [rows] : []), ...both].filter(
    ({ width }) => room.width / width >= READABLE,
  );
  return best(narrow.length > 0 ? narrow : both);
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
  for (const node of drawing.nodes) {
    graph.setNode(node.id, sizeOf(node));
    if (node.group !== undefined) graph.setParent(node.id, node.group);
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
    return { points, label: hasLabel ? { x, y } : undefined };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  const top = Math.min(0, ...[...boxes.values()].map(({ y }) => y - 4));
  // The name of a group at the top would otherwise be above the edge.
  return moved({ width, height: height - top, boxes, lines, frames: [] }, { x: 0, y: -top });
}
