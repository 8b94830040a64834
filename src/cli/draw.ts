import type { GraphTopology, TopologyEdge, TopologyNode } from "../graph/description.js";
import type { DiagramProgress } from "../graph/mermaid.js";
import { END } from "../graph/node.js";
import type { Look, Paint } from "./output/style.js";
import { cut, plain, widthOf } from "./output/text.js";

type Shape = Pick<GraphTopology, "entry" | "nodes" | "edges">;

const LEFT = 4;
const NAME = 60;
/** The minimum width for an edge beside a box; in a narrower terminal the line wraps. */
const LEAST = 12;

/**
 * Draws a graph as boxes, one below the other in the order a run reaches them. An edge to the next box is a line;
 * all others are listed beside the box they start from.
 *
 * @param screen - the width of the terminal.
 */
export function draw(
  shape: Shape,
  progress: DiagramProgress | undefined,
  paint: Paint,
  screen: number,
): string {
  const order = inOrder(shape);
  const lines: string[] =
    shape.entry === "" ? [] : [`${" ".repeat(LEFT)}start`, ...down(false, "")];
  for (const [at, node] of order.entries()) {
    const next = order[at + 1];
    const edges = shape.edges.filter(({ from }) => from === node.name);
    const straight = edges.find(({ to }) => to === next?.name);
    const others = edges.filter((edge) => edge !== straight);
    lines.push(...box(node, markOf(node, progress), others, straight !== undefined, paint, screen));
    if (straight !== undefined) {
      lines.push(...down(straight.conditional, plain(straight.name ?? "")));
    } else if (next !== undefined) lines.push("");
  }
  return lines.join("\n");
}

/** How a node is marked, by whether the run has completed it or continues there. */
interface Mark {
  readonly sign: string;
  readonly look: Look | undefined;
}

function markOf({ name }: TopologyNode, progress: DiagramProgress | undefined): Mark {
  if (progress?.next === name) return { sign: "▶ ", look: "yellow" };
  const isDone = (progress?.visits[name] ?? 0) > 0;
  return isDone ? { sign: "✓ ", look: "green" } : { sign: "", look: undefined };
}

/** The nodes, each after one that leads to it; unreachable nodes come last. */
function inOrder({ entry, nodes, edges }: Shape): readonly TopologyNode[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const ordered = new Set<TopologyNode>();
  const visit = (name: string): void => {
    const node = byName.get(name);
    if (node === undefined || ordered.has(node)) return;
    ordered.add(node);
    for (const { from, to } of edges) if (from === name) visit(to);
  };
  visit(entry);
  for (const { name } of nodes) visit(name);
  return [...ordered];
}

function box(
  { name, exit }: TopologyNode,
  { sign, look }: Mark,
  others: readonly TopologyEdge[],
  isLinked: boolean,
  paint: Paint,
  screen: number,
): string[] {
  const text = cut(sign + plain(name), Math.max(Math.min(NAME, screen - 4), LEFT));
  const [topLeft, topRight, bottomLeft, bottomRight] = exit ? "╭╮╰╯" : "┌┐└┘";
  const width = Math.max(widthOf(text), LEFT + 1);
  const bar = "─".repeat(width + 2);
  const foot = isLinked ? `${bar.slice(0, LEFT - 1)}┬${bar.slice(LEFT)}` : bar;
  const beside = others.map(({ to, name: label = "", conditional }) => {
    const target = to === name ? "itself" : to === END ? "end" : plain(to);
    const edge = ` ${conditional ? "╌╌▷" : "──▶"} ${target}${label === "" ? "" : `  ${plain(label)}`}`;
    return cut(edge, Math.max(screen - width - 4, LEAST));
  });
  const middle = `│ ${text}${" ".repeat(width - widthOf(text))} │`;
  return [
    paint(look, `${topLeft}${bar}${topRight}`),
    `${paint(look, middle)}${paint("dim", beside[0] ?? "")}`,
    ...beside
      .slice(1, -1)
      .map((edge) => paint(look, `│ ${" ".repeat(width)} │`) + paint("dim", edge)),
    `${paint(look, `${bottomLeft}${foot}${bottomRight}`)}${
      beside.length > 1 ? paint("dim", beside.at(-1) ?? "") : ""
    }`,
  ];
}

function down(isConditional: boolean, label: string): string[] {
  const space = " ".repeat(LEFT);
  return [`${space}${isConditional ? "╎" : "│"}${label === "" ? "" : ` ${label}`}`, `${space}▼`];
}
