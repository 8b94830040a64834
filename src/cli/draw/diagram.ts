/** A node of a diagram. */
export interface DiagramNode {
  readonly id: string;
  readonly name: string;
  readonly isExit: boolean;
  /** How far a run is: `""` when it has not come here, or there is no run. */
  readonly mark: "done" | "next" | "";
}

/** An edge of a diagram. */
export interface DiagramEdge {
  readonly from: string;
  readonly to: string;
  /** `""` when it has none. */
  readonly label: string;
  readonly isConditional: boolean;
}

/** What a Mermaid flowchart of a graph says. */
export interface Diagram {
  readonly entry: string;
  readonly nodes: readonly DiagramNode[];
  readonly edges: readonly DiagramEdge[];
}

/** Reads what `toMermaid` of a graph writes: it tells all that there is to draw. */
export function readDiagram(mermaid: string): Diagram {
  const lines = mermaid.split("\n").map((line) => line.trim());
  const marks = new Map<string, DiagramNode["mark"]>();
  for (const line of lines) {
    const [, ids = "", mark] = /^class (\S+) (done|next)$/.exec(line) ?? [];
    for (const id of mark === undefined ? [] : ids.split(",")) {
      marks.set(id, mark === "done" ? "done" : "next");
    }
  }
  const nodes = lines.flatMap((line): DiagramNode[] => {
    const [, id, opening, name] = /^(n\d+)(\(\[|\[)"(.*)"\]\)?$/.exec(line) ?? [];
    if (id === undefined || name === undefined) return [];
    return [{ id, name: decoded(name), isExit: opening === "([", mark: marks.get(id) ?? "" }];
  });
  const edges = lines.flatMap((line): DiagramEdge[] => {
    const [, from, arrow, label = "", to] =
      /^(n\d+) (-->|-\.->)(?:\|"(.*)"\|)? (n\d+)$/.exec(line) ?? [];
    if (from === undefined || to === undefined) return [];
    return [{ from, to, label: decoded(label), isConditional: arrow === "-.->" }];
  });
  const [, entry = ""] = /^ *start --> (n\d+)$/m.exec(mermaid) ?? [];
  return { entry, nodes, edges };
}

function decoded(label: string): string {
  return label.replace(/#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
}
