import type { Look, Paint } from "../output/style.js";
import { cut, plain, widthOf } from "../output/text.js";
import type { Diagram, DiagramEdge, DiagramNode } from "./diagram.js";

const looks: Readonly<Record<DiagramNode["mark"], Look | undefined>> = {
  done: "green",
  next: "yellow",
  "": undefined,
};
const signs: Readonly<Record<DiagramNode["mark"], string>> = { done: "✓ ", next: "▶ ", "": "" };

const LEFT = 4;
const NAME = 60;
/** What an edge beside a box has at least: a terminal breaks the line then. */
const LEAST = 12;

/**
 * A graph as boxes, one below the other in the order in which a run comes to them. An edge to the
 * next box is a line; all others are named beside the box they start from.
 *
 * @param screen - how wide it may be.
 */
export function draw(diagram: Diagram, paint: Paint, screen: number): string {
  const order = inOrder(diagram);
  const lines: string[] =
    diagram.entry === "" ? [] : [`${" ".repeat(LEFT)}start`, ...down(false, "")];
  for (const [at, node] of order.entries()) {
    const next = order[at + 1];
    const edges = diagram.edges.filter(({ from }) => from === node.id);
    const straight = edges.find(({ to }) => to === next?.id);
    const others = edges.filter((edge) => edge !== straight);
    lines.push(...box(node, others, diagram, straight !== undefined, paint, screen));
    if (straight !== undefined) lines.push(...down(straight.isConditional, plain(straight.label)));
    else if (next !== undefined) lines.push("");
  }
  return lines.join("\n");
}

/** The nodes, each after one that leads to it; what nothing leads to comes last. */
function inOrder({ entry, nodes, edges }: Diagram): readonly DiagramNode[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ordered = new Set<DiagramNode>();
  const visit = (id: string): void => {
    const node = byId.get(id);
    if (node === undefined || ordered.has(node)) return;
    ordered.add(node);
    for (const { from, to } of edges) if (from === id) visit(to);
  };
  visit(entry);
  for (const { id } of nodes) visit(id);
  return [...ordered];
}

function box(
  node: DiagramNode,
  others: readonly DiagramEdge[],
  { nodes }: Diagram,
  goesOn: boolean,
  paint: Paint,
  screen: number,
): string[] {
  const text = cut(signs[node.mark] + plain(node.name), Math.max(Math.min(NAME, screen - 4), LEFT));
  const [topLeft, topRight, bottomLeft, bottomRight] = node.isExit ? "╭╮╰╯" : "┌┐└┘";
  const width = Math.max(widthOf(text), LEFT + 1);
  const bar = "─".repeat(width + 2);
  const foot = goesOn ? `${bar.slice(0, LEFT - 1)}┬${bar.slice(LEFT)}` : bar;
  const nameOf = (id: string): string => plain(nodes.find((one) => one.id === id)?.name ?? id);
  const beside = others.map(({ to, label, isConditional }) => {
    const name = to === node.id ? "itself" : nameOf(to);
    const edge = ` ${isConditional ? "╌╌▷" : "──▶"} ${name}${label === "" ? "" : `  ${plain(label)}`}`;
    return cut(edge, Math.max(screen - width - 4, LEAST));
  });
  const look = looks[node.mark];
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
