import { isWaymarkError } from "../../errors.js";
import type { Command } from "../command.js";
import { usage } from "../exit.js";
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
    return go(context, graph, runId, async (signal) => {
      try {
        return await graph.resume(runId, { signal, ...at, ...input });
      } catch (error) {
        const isAsked = isWaymarkError(error, "CONFIG") && error.option === "input";
        if (!isAsked || text !== undefined) throw error;
        const [see, answer] = [
          context.command("show", runId),
          context.command("resume", runId, "--input", "JSON"),
        ];
        throw usage(`run ${runId} waits for an answer`, `see: ${see}; answer: ${answer}`);
      }
    });
  },
};
