import type { Visits } from "../state/counts.js";
import type { GraphTopology } from "./description.js";
import { END } from "./node.js";

/** The progress of a run, for a diagram. */
export interface DiagramProgress {
  /** How often each node ran. */
  readonly visits: Visits;
  /** The node that comes next, if there is one. */
  readonly next: string | undefined;
}

/** A graph as a Mermaid flowchart. */
export function toMermaid(
  { nodes, edges, entry }: Pick<GraphTopology, "nodes" | "edges" | "entry">,
  progress?: DiagramProgress,
): string {
  const ids = new Map(nodes.map(({ name }, index) => [name, `n${index}`]));
  const id = (name: string): string => ids.get(name) ?? "end_";
  const lines = ["flowchart TD"];
  if (entry !== "") lines.push("  start([start])");
  for (const { name, exit } of nodes)
    lines.push(`  ${id(name)}${exit ? `([${label(name)}])` : `[${label(name)}]`}`);
  if (edges.some(({ to }) => to === END)) lines.push("  end_([end])");
  if (entry !== "") lines.push(`  start --> ${id(entry)}`);
  for (const { from, to, name, conditional } of edges) {
    const arrow = conditional ? "-.->" : "-->";
    lines.push(`  ${id(from)} ${arrow}${name === undefined ? "" : `|${label(name)}|`} ${id(to)}`);
  }
  if (progress !== undefined) {
    const idOf = (node: { readonly name: string }): string => id(node.name);
    const done = nodes.filter(
      (node) => node.name !== progress.next && (progress.visits[node.name] ?? 0) > 0,
    );
    const next = nodes.filter((node) => node.name === progress.next);
    lines.push("  classDef done fill:#d3f9d8,stroke:#2b8a3e,color:#1b4332");
    lines.push("  classDef next fill:#fff3bf,stroke:#e67700,color:#5f3700");
    if (done.length > 0) lines.push(`  class ${done.map(idOf).join(",")} done`);
    if (next.length > 0) lines.push(`  class ${next.map(idOf).join(",")} next`);
  }
  return `${lines.join("\n")}\n`;
}

/** Any text as a quoted label: characters that Mermaid could read as syntax become entities. */
function label(text: string): string {
  return `"${text.replace(/[#"<>&|\\[\](){}`\p{Cc}\u2028\u2029]/gu, (char) => `#${char.charCodeAt(0)};`)}"`;
}
