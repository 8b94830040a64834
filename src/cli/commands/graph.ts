import { toMermaid } from "../../graph/mermaid.js";
import type { Command } from "../command.js";
import { missing, usage } from "../exit.js";
import { plainLines } from "../output/text.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark graph`. */
export const command: Command = {
  name: "graph",
  summary: "Print a graph as Mermaid, or draw it; with --run, how far that run is",
  details: "With --run alone it prints the graph as the store keeps it, without the graph's code.",
  arguments: [
    {
      name: "graph",
      text: "its name in the config, or a module: ./graph.ts#graph",
      optional: true,
      completes: "graph",
    },
  ],
  options: [
    { flags: "--run <run>", text: "mark what this run has done, and what comes next" },
    { flags: "--draw", text: "draw it in the terminal" },
  ],
  examples: ["waymark graph article > article.mmd", "waymark graph --run 019a2f --draw"],
  run: async (context, values) => {
    const [name] = values.arguments;
    const given = values.text("run");
    if (name === undefined && given === undefined) {
      throw usage("graph needs a graph or --run", "as in waymark graph article");
    }
    const graph = name === undefined ? undefined : await context.graph(name);
    const opened = given === undefined ? undefined : await context.store();
    const named = opened && (await findRun(opened, given ?? ""));
    const place = opened && named && (await findAt(opened.store, named, undefined));
    const state = named && (await opened?.store.load<object>(named.runId, place));
    const saved = state?.graph && (await opened?.store.topology?.(state.graph.fingerprint));
    const topology = graph?.topology ?? saved;
    if (topology === undefined) {
      throw missing(`the store does not know the graph of run ${named?.runId}`, "name it");
    }
    const next = state && (graph === undefined ? state.nextNode : graph.nextNode(state));
    const progress = state && { visits: state.visits, next };
    const mermaid = toMermaid(topology, progress);
    const { print } = context;
    const { draw } = await import("../draw.js");
    print.result({ ...topology, ...(progress && { progress }), mermaid }, () =>
      values.flag("draw")
        ? draw(topology, progress, print.paint, print.width)
        : plainLines(mermaid),
    );
    return undefined;
  },
};
