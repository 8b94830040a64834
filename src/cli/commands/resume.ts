import { at, CHECKPOINT, type Command, graph as graphOption, run } from "../command.js";
import type { Work } from "../execution/execute.js";
import { findAt } from "../store/find.js";

/** `waymark resume`. */
export const command: Command = {
  name: "resume",
  summary: "Continue a run in this terminal",
  details:
    "The graph is the one named in the run's checkpoints, taken from the config. A paused run takes " +
    "its --input first. Ctrl-C stops the run so that it can be resumed again.",
  arguments: [run],
  options: [
    {
      flags: "--input <value>",
      text: "the answer that the run is waiting for: JSON, text, @file, or -",
    },
    { ...at, text: `continue after ${CHECKPOINT}; the newest by default` },
    graphOption,
  ],
  examples: ["waymark resume 019a2f", "waymark resume 019a2f --input '{\"approved\":true}'"],
  run: async (context, values) => {
    const [{ execute }, { findGraphRun }, { readValue }] = await Promise.all([
      import("../execution/execute.js"),
      import("../execution/graph-run.js"),
      import("../data.js"),
    ]);
    const found = await findGraphRun(context, values.argument(0), values.text("graph"));
    const { graph, runId } = found;
    const place = await findAt(graph, found, values.text("at"));
    const text = values.text("input");
    const input = text === undefined ? {} : { input: await readValue(context.io, text) };
    const { audit } = context;
    const work: Work = (signal) => graph.resume(runId, { signal, audit, ...place, ...input });
    return execute(context, graph, runId, work, text !== undefined);
  },
};
