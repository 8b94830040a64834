import type { Visits } from "../state/record.js";
import type { GraphNode } from "./node.js";

/** How far a run is, for a diagram. */
export interface DiagramProgress {
  /** How often each node ran. */
  readonly visits: Visits;
  /** The node that comes next, if there is one. */
  readonly next: string | undefined;
}

/** A graph as a Mermaid flowchart. */
export function toMermaid<D extends object>(
  nodes: readonly GraphNode<D>[],
  entry: GraphNode<D> | undefined,
  progress?: DiagramProgress,
): string {
  const id = (node: GraphNode<D>): string => `n${node.index}`;
  const lines = ["flowchart TD"];
  if (entry !== undefined) lines.push("  start([start])");
  for (const node of nodes)
    lines.push(`  ${id(node)}${node.exit ? `([${label(node.name)}])` : `[${label(node.name)}]`}`);
  if (entry !== undefined) lines.push(`  start --> ${id(entry)}`);
  for (const node of nodes) {
    for (const edge of node.edges) {
      const arrow = edge.predicate === undefined ? "-->" : "-.->";
      lines.push(
        `  ${id(node)} ${arrow}${edge.name === undefined ? "" : `|${label(edge.name)}|`} ${id(edge.to)}`,
      );
    }
  }
  if (progress !== undefined) {
    const done = nodes.filter(
      (node) => node.name !== progress.next && (progress.visits[node.name] ?? 0) > 0,
    );
    const next = nodes.filter((node) => node.name === progress.next);
    lines.push("  classDef done fill:#d3f9d8,stroke:#2b8a3e,color:#1b4332");
    lines.push("  classDef next fill:#fff3bf,stroke:#e67700,color:#5f3700");
    if (done.length > 0) lines.push(`  class ${done.map(id).join(",")} done`);
    if (next.length > 0) lines.push(`  class ${next.map(id).join(",")} next`);
  }
  return `${lines.join("\n")}\n`;
}

/** Any text as a quoted label: what Mermaid could read as syntax is written as entities. */
function label(text: string): string {
  return `"${text.replace(/[#"<>&|\\[\](){}`\p{Cc}\u2028\u2029]/gu, (char) => `#${char.charCodeAt(0)};`)}"`;
}
