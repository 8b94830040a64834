import type { Command } from "../command.js";
import type { Work } from "../going/go.js";
import { findAt } from "../store/find.js";

/** `waymark resume`. */
export const command: Command = {
  name: "resume",
  summary: "Go on with a run where it was, in this terminal",
  details:
    "The graph is the one that the run's checkpoints name, out of the config. A paused run takes " +
    "its --input first. Ctrl-C stops the run so that it can be resumed again.",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [
    {
      flags: "--input <value>",
      text: "the answer to what the run waits for: JSON, text, @file, or -",
    },
    {
      flags: "--at <checkpoint>",
      text: "go on after this step or checkpoint; the newest by default",
    },
    { flags: "--graph <graph>", text: "another name in the config, or a module: ./graph.ts#graph" },
  ],
  examples: ["waymark resume 019a2f", "waymark resume 019a2f --input '{\"approved\":true}'"],
  run: async (context, values) => {
    const [{ go }, { findGraphRun }, { readValue }] = await Promise.all([
      import("../going/go.js"),
      import("../going/graph-run.js"),
      import("../data.js"),
    ]);
    const { graph, runId } = await findGraphRun(context, values.argument(0), values.text("graph"));
    const given = values.text("at");
    const at = given === undefined ? {} : await findAt(graph, runId, given);
    const text = values.text("input");
    const input = text === undefined ? {} : { input: await readValue(context.io, text) };
    const work: Work = (signal) => graph.resume(runId, { signal, ...at, ...input });
    return go(context, graph, runId, work, text !== undefined);
  },
};
