import { Graph, layout } from "@dagrejs/dagre";
import type { Drawing, DrawnNode } from "./model.js";
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

/** So many nodes with the same edges are drawn as a grid. */
const MANY_TWINS = 8;
const GRID_GAP = 12;
const LABEL_HEIGHT = 18;
const ROW_GAP = 36;
/** A row is not broken where more edges than this would have to go around the corner. */
const MOST_TURNS = 4;
const TURN = 24;
const CORNER = 12;
/** The room beside the rows. */
const ASIDE = MARGIN + TURN + 8;

/**
 * Lays a large drawing out in rows, each in the direction opposite to the one above it, as wide as the room is at a scale
 * at which names can be read; `undefined` if edges lead into the middle of its groups.
 */
export function folded(
  drawing: Drawing,
  room: { readonly width: number; readonly height: number },
): Layout | undefined {
  if (!drawing.groups.every(({ id }) => isClosed(drawing, id))) return undefined;
  const smallest = fold(drawing, undefined, room.width / READABLE);
  // Twice the width has half the height.
  const scale = Math.min(1, 0.95 * Math.sqrt((room.height * READABLE) / smallest.height));
  if (scale <= READABLE) return smallest;
  const larger = fold(drawing, undefined, room.width / scale);
  const fits = larger.height * Math.min(1, room.width / larger.width) <= room.height;
  return fits ? larger : smallest;
}

/** Whether a group has one way in and one way out, so that it can be laid out by itself. */
function isClosed({ nodes, edges, groups }: Drawing, group: string): boolean {
  const parents = new Map(groups.map(({ id, parent }) => [id, parent]));
  const isInside = (within: string | undefined): boolean =>
    within !== undefined && (within === group || isInside(parents.get(within)));
  const inside = new Set(nodes.filter((node) => isInside(node.group)).map(({ id }) => id));
  const ways = (one: "from" | "to", other: "from" | "to"): number => {
    const crossing = edges.filter((edge) => inside.has(edge[one]) && !inside.has(edge[other]));
    return new Set(crossing.map((edge) => edge[one])).size;
  };
  return ways("from", "to") <= 1 && ways("to", "from") <= 1;
}

/** What is placed as a whole: a node, a group, or a grid of nodes. */
interface Item {
  readonly id: string;
  readonly width: number;
  readonly height: number;
  /** What is inside, from the item's top left corner on. */
  readonly inner?: Layout;
  readonly isGrid?: boolean;
}

/** An edge between two items. */
interface Link {
  /** Its place among the edges of the drawing. */
  readonly index: number;
  readonly from: Item;
  readonly to: Item;
  readonly label: string;
}

interface Placed {
  readonly boxes: Map<string, Box>;
  readonly lines: Map<number, Line>;
}

const nowhere: Line = { points: [], label: undefined };

/** Lays out what lies directly in a group, or in no group, in rows of about a width. */
function fold(drawing: Drawing, level: string | undefined, width: number): Layout {
  const { items, links } = itemsOf(drawing, level, width);
  const { boxes, lines } = inRows(items, links, width - 2 * ASIDE);
  const all = drawing.edges.map((_, index) => lines.get(index) ?? nowhere);
  const frames: Box[] = [];
  for (const { id, inner, isGrid = false } of items) {
    const box = boxes.get(id);
    if (box === undefined || inner === undefined) continue;
    const placed = moved(inner, box);
    for (const [name, one] of placed.boxes) boxes.set(name, one);
    for (const [index, { points, label }] of placed.lines.entries()) {
      const own = all[index];
      if (points.length > 0) all[index] = { points, label };
      // In a grid, the label of an edge is beside the node that it leads to.
      else if (own !== undefined && label !== undefined) all[index] = { ...own, label };
    }
    frames.push(...placed.frames, ...(isGrid ? [box] : []));
  }
  const bounds = boundsOf([...boxes.values()], all);
  const layout = {
    width: bounds.width + 2 * MARGIN,
    height: bounds.height + 2 * MARGIN,
    boxes,
    lines: all,
    frames,
  };
  return moved(layout, { x: MARGIN - bounds.x, y: MARGIN - bounds.y });
}

function boundsOf(boxes: readonly Box[], lines: readonly Line[]): Box {
  const points = lines.flatMap(({ points: corners }) => corners);
  const x = Math.min(...boxes.map((box) => box.x), ...points.map((point) => point.x));
  const y = Math.min(...boxes.map((box) => box.y), ...points.map((point) => point.y));
  const right = Math.max(...boxes.map((box) => box.x + box.width), ...points.map((one) => one.x));
  const bottom = Math.max(...boxes.map((box) => box.y + box.height), ...points.map((one) => one.y));
  return { x, y, width: right - x, height: bottom - y };
}

function itemsOf(
  drawing: Drawing,
  level: string | undefined,
  width: number,
): { readonly items: readonly Item[]; readonly links: readonly Link[] } {
  const { nodes, edges, groups } = drawing;
  const parents = new Map(groups.map(({ id, parent }) => [id, parent]));
  /** The node or group of this level that a node is, or is in. */
  const holder = ({ id, group }: DrawnNode): string | undefined => {
    let [one, within]: (string | undefined)[] = [id, group];
    while (one !== undefined && within !== level)
      [one, within] = [within, parents.get(within ?? "")];
    return one;
  };
  const holders = new Map(nodes.map((node) => [node.id, holder(node)]));
  const itemOf = new Map<string, Item>();
  const items: Item[] = [];
  const add = (item: Item, ids: readonly string[]): void => {
    items.push(item);
    for (const id of ids) itemOf.set(id, item);
  };
  const own = nodes.filter(({ group }) => group === level);
  const grids = twinsOf(own, edges, holders);
  for (const grid of grids)
    add(
      gridOf(grid, drawing, width),
      grid.map(({ id }) => id),
    );
  for (const node of own)
    if (!itemOf.has(node.id)) add({ id: node.id, ...sizeOf(node) }, [node.id]);
  for (const { id, parent } of groups) {
    if (parent !== level) continue;
    const inner = moved(fold(drawing, id, width - 2 * ASIDE), { x: 0, y: GROUP_HEAD - MARGIN });
    add({ id, width: inner.width, height: inner.height + GROUP_HEAD - MARGIN, inner }, [id]);
  }
  const links = edges.flatMap(({ from, to, label }, index): Link[] => {
    const one = itemOf.get(holders.get(from) ?? "");
    const other = itemOf.get(holders.get(to) ?? "");
    if (one === undefined || other === undefined) return [];
    // What stays within a group is drawn there.
    if (one === other && one.inner !== undefined) return [];
    return [{ index, from: one, to: other, label }];
  });
  return { items, links };
}

/** Nodes with the same edges as many others. */
function twinsOf(
  nodes: readonly DrawnNode[],
  edges: Drawing["edges"],
  holders: ReadonlyMap<string, string | undefined>,
): DrawnNode[][] {
  const classes = new Map<string, DrawnNode[]>();
  for (const node of nodes) {
    const ins = edges.filter(({ to }) => to === node.id);
    const outs = edges.filter(({ from }) => from === node.id);
    const isPlain = ins.length > 0 && outs.every(({ to, label }) => to !== node.id && label === "");
    if (!isPlain) continue;
    const names = (ids: string[]): string[] => ids.map((id) => holders.get(id) ?? "").sort();
    const key = JSON.stringify([
      names(ins.map(({ from }) => from)),
      names(outs.map(({ to }) => to)),
    ]);
    classes.set(key, [...(classes.get(key) ?? []), node]);
  }
  return [...classes.values()].filter(({ length }) => length >= MANY_TWINS);
}

function gridOf(nodes: readonly DrawnNode[], { edges }: Drawing, width: number): Item {
  const labelled = nodes.some(({ id }) => edges.some(({ to, label }) => to === id && label !== ""));
  const head = labelled ? LABEL_HEIGHT : 0;
  const sizes = nodes.map(sizeOf);
  const cell = {
    width: Math.max(...sizes.map((size) => size.width)) + GRID_GAP,
    height: Math.max(...sizes.map((size) => size.height)) + head + GRID_GAP,
  };
  // Beside the grid there is room for what leads to it, and from it.
  const most = Math.max(1, Math.floor((width * 0.6) / cell.width));
  const columns = Math.min(most, Math.ceil(Math.sqrt(nodes.length)));
  const boxes = new Map<string, Box>();
  for (const [index, { id }] of nodes.entries()) {
    const x = GRID_GAP + (index % columns) * cell.width;
    const y = GRID_GAP + head + Math.floor(index / columns) * cell.height;
    boxes.set(id, { ...(sizes[index] ?? cell), x, y });
  }
  const lines = edges.map(({ to, label }): Line => {
    const box = label === "" ? undefined : boxes.get(to);
    const at = box && { x: box.x + box.width / 2, y: box.y - LABEL_HEIGHT / 2 };
    return { points: [], label: at };
  });
  const size = {
    width: columns * cell.width + GRID_GAP,
    height: Math.ceil(nodes.length / columns) * cell.height + GRID_GAP,
  };
  const id = `grid:${nodes[0]?.id}`;
  return { id, ...size, inner: { ...size, boxes, lines, frames: [] }, isGrid: true };
}

/** Places items by the ranks that their links give them, and breaks the ranks into rows. */
function inRows(items: readonly Item[], links: readonly Link[], width: number): Placed {
  const rows = rowsOf(items, links, width).map((ids) => {
    const own = items.filter(({ id }) => ids.has(id));
    const within = links.filter(({ from, to }) => ids.has(from.id) && ids.has(to.id));
    return { ids, ...straight(own, within) };
  });
  const bounds = rows.map(({ boxes, lines }) => boundsOf([...boxes.values()], [...lines.values()]));
  const widest = Math.max(...bounds.map((row) => row.width));
  const all: Placed = { boxes: new Map(), lines: new Map() };
  const tops: number[] = [];
  let top = 0;
  for (const [index, { boxes, lines }] of rows.entries()) {
    const row = bounds[index] ?? { x: 0, y: 0, width: 0, height: 0 };
    const isBack = index % 2 === 1;
    const by = top - row.y;
    const across = (x: number): number => (isBack ? widest - (x - row.x) : x - row.x);
    const place = ({ x, y }: Point): Point => ({ x: across(x), y: y + by });
    for (const [id, box] of boxes) {
      const x = isBack ? across(box.x + box.width) : across(box.x);
      all.boxes.set(id, { ...box, x, y: box.y + by });
    }
    for (const [at, { points, label }] of lines) {
      all.lines.set(at, { points: points.map(place), label: label && place(label) });
    }
    tops.push(top);
    top += row.height + ROW_GAP;
  }
  const rowOf = (item: Item): number => rows.findIndex(({ ids }) => ids.has(item.id));
  let turns = 0;
  for (const link of links) {
    if (all.lines.has(link.index)) continue;
    const ends = [rowOf(link.from), rowOf(link.to)] as const;
    all.lines.set(
      link.index,
      around(link, ends, { boxes: all.boxes, tops, widest, rows }, turns++),
    );
  }
  return all;
}

/** The items of each row. */
function rowsOf(items: readonly Item[], links: readonly Link[], width: number): Set<string>[] {
  const { boxes } = straight(items, links);
  const columns = new Map<number, { ids: string[]; left: number; right: number }>();
  for (const [id, { x, width: own }] of boxes) {
    const middle = Math.round(x + own / 2);
    const { ids, left, right } = columns.get(middle) ?? { ids: [], left: x, right: x };
    columns.set(middle, {
      ids: [...ids, id],
      left: Math.min(left, x),
      right: Math.max(right, x + own),
    });
  }
  const sorted = [...columns].sort(([a], [b]) => a - b).map(([, column]) => column);
  const columnOf = new Map(sorted.flatMap(({ ids }, index) => ids.map((id) => [id, index])));
  const turnsAfter = (index: number): number => {
    const isBefore = ({ id }: Item): boolean => (columnOf.get(id) ?? 0) <= index;
    const crossing = links.filter(({ from, to }) => isBefore(from) !== isBefore(to));
    return new Set(crossing.map(({ from, to }) => `${from.id}\n${to.id}`)).size;
  };
  const rows: Set<string>[] = [];
  let start = 0;
  for (const [index, { right }] of sorted.entries()) {
    if (right - (sorted[start]?.left ?? 0) <= width) continue;
    let end = index;
    while (end > start && turnsAfter(end - 1) > MOST_TURNS) end--;
    if (end === start) continue;
    rows.push(new Set(sorted.slice(start, end).flatMap(({ ids }) => ids)));
    start = end;
  }
  rows.push(new Set(sorted.slice(start).flatMap(({ ids }) => ids)));
  return rows;
}

/** Items in one row, from left to right. */
function straight(items: readonly Item[], links: readonly Link[]): Placed {
  const graph = new Graph({ directed: true, multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: 20, ranksep: 32, edgesep: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of items) graph.setNode(id, { width, height });
  // All edges to or from a grid are one line.
  const nameOf = ({ index, from, to }: Link): string =>
    from.isGrid || to.isGrid ? "all" : `${index}`;
  for (const link of links) {
    const { from, to, label } = link;
    const hasLabel = label !== "" && !to.isGrid;
    const size = hasLabel ? { width: widthOf(label) + 8, height: 16, labelpos: "c" } : {};
    graph.setEdge(from.id, to.id, size, nameOf(link));
  }
  layout(graph);
  const boxes = new Map<string, Box>();
  for (const { id, width, height } of items) {
    const { x = 0, y = 0 } = graph.node(id) as Partial<Point>;
    boxes.set(id, { x: x - width / 2, y: y - height / 2, width, height });
  }
  const lines = new Map<number, Line>();
  for (const link of links) {
    const edge = graph.edge({ v: link.from.id, w: link.to.id, name: nameOf(link) });
    const { points = [], x, y } = edge as { points?: readonly Point[] } & Partial<Point>;
    const hasLabel = link.label !== "" && !link.to.isGrid && x !== undefined && y !== undefined;
    lines.set(link.index, { points, label: hasLabel ? { x, y } : undefined });
  }
  return { boxes, lines };
}

/** An edge from one row to another: around the end of both, or through the gaps between rows. */
function around(
  { from, to, label }: Link,
  [start, end]: readonly [number, number],
  {
    boxes,
    tops,
    widest,
    rows,
  }: {
    readonly boxes: ReadonlyMap<string, Box>;
    readonly tops: readonly number[];
    readonly widest: number;
    readonly rows: readonly { readonly ids: ReadonlySet<string> }[];
  },
  turn: number,
): Line {
  const [one, other] = [boxes.get(from.id), boxes.get(to.id)];
  if (one === undefined || other === undefined) return nowhere;
  const middle = ({ x, y, width, height }: Box): Point => ({ x: x + width / 2, y: y + height / 2 });
  const isRight = Math.min(start, end) % 2 === 0;
  const outer = ({ x, width }: Box): number => (isRight ? x + width : -x);
  const isLast = (box: Box, row: number): boolean =>
    [...(rows[row]?.ids ?? [])].every((id) => outer(boxes.get(id) ?? box) <= outer(box));
  if (Math.abs(start - end) === 1 && isLast(one, start) && isLast(other, end)) {
    const sign = isRight ? 1 : -1;
    const beyond = sign * (Math.max(outer(one), outer(other)) + TURN);
    const points = [
      { x: sign * outer(one), y: middle(one).y },
      { x: beyond, y: middle(one).y },
      { x: beyond, y: middle(other).y },
      { x: sign * outer(other), y: middle(other).y },
    ];
    const x = beyond - sign * (widthOf(label) / 2 + 8);
    const y = (middle(one).y + middle(other).y) / 2;
    return { points: cornered(points), label: label === "" ? undefined : { x, y } };
  }
  const isDown = end > start;
  const shift = ((turn % 5) - 2) * 4;
  const gapAbove = (row: number): number => (tops[row] ?? 0) - ROW_GAP / 2 + shift;
  const leaving = gapAbove(isDown ? start + 1 : start);
  const arriving = gapAbove(isDown ? end : end + 1);
  const [a, b] = [middle(one), middle(other)];
  const side = a.x + b.x < widest ? -TURN - shift : widest + TURN + shift;
  const points = [
    { x: a.x, y: isDown ? one.y + one.height : one.y },
    { x: a.x, y: leaving },
    ...(leaving === arriving
      ? []
      : [
          { x: side, y: leaving },
          { x: side, y: arriving },
        ]),
    { x: b.x, y: arriving },
    { x: b.x, y: isDown ? other.y : other.y + other.height },
  ];
  const at = { x: leaving === arriving ? (a.x + b.x) / 2 : (a.x + side) / 2, y: leaving };
  return { points: cornered(points), label: label === "" ? undefined : at };
}

/** Adds points near the corners, so that only those are rounded. */
function cornered(points: readonly Point[]): readonly Point[] {
  return points.flatMap((point, index) => {
    const [before, after] = [points[index - 1], points[index + 1]];
    if (before === undefined || after === undefined) return [point];
    return [towards(point, before), point, towards(point, after)];
  });
}

function towards(from: Point, to: Point): Point {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const part = Math.min(0.5, CORNER / length);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part };
}
