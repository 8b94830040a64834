import type { Command } from "../command.js";
import { findRun } from "../store/find.js";

/** `waymark graph`. */
export const command: Command = {
  name: "graph",
  summary: "Print a graph as Mermaid, or draw it; with a run, how far that is",
  arguments: [
    {
      name: "graph",
      text: "its name in the config, or a module: ./graph.ts#graph",
      completes: "graph",
    },
  ],
  options: [
    { flags: "--run <run>", text: "mark what this run has done, and what is next" },
    { flags: "--draw", text: "draw it in the terminal" },
  ],
  examples: ["waymark graph article > article.mmd", "waymark graph article --run 019a2f --draw"],
  run: async (context, values) => {
    const graph = await context.graph(values.argument(0));
    const given = values.text("run");
    const { print } = context;
    let mermaid = graph.toMermaid();
    if (given !== undefined) {
      const opened = await context.store();
      const state = await opened.store.load<object>(await findRun(opened, given));
      mermaid = graph.toMermaid({ state });
    }
    const { name, fingerprint } = graph;
    if (!values.flag("draw")) {
      print.result({ name, fingerprint, mermaid }, () => mermaid);
      return undefined;
    }
    const [{ readDiagram }, { draw }] = await Promise.all([
      import("../draw/diagram.js"),
      import("../draw/draw.js"),
    ]);
    const diagram = readDiagram(mermaid);
    print.result({ name, fingerprint, ...diagram }, () => draw(diagram, print.paint, print.width));
    return undefined;
  },
};
