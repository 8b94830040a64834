import type { Command } from "../command.js";
import { usage } from "../exit.js";
import { findAt } from "../store/find.js";

/** `waymark replay`. */
export const command: Command = {
  name: "replay",
  summary: "Run again from an earlier step, as a fork: the original stays as it is",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [
    { flags: "--from <checkpoint>", text: "the step or checkpoint to go on after" },
    { flags: "--set <key=value>", text: "change the data first; JSON, or text", many: true },
    { flags: "--graph <graph>", text: "another name in the config, or a module: ./graph.ts#graph" },
  ],
  examples: [
    "waymark replay 019a2f --from 2",
    "waymark replay 019a2f --from 0 --set topic=dolmens",
  ],
  run: async (context, values) => {
    const from = values.text("from");
    if (from === undefined)
      throw usage("replay wants --from", "waymark history RUN shows the steps");
    const [{ go }, { findGraphRun }, { readChanges }] = await Promise.all([
      import("../going/go.js"),
      import("../going/graph-run.js"),
      import("../data.js"),
    ]);
    const changes = await readChanges(context.io, values.texts("set"));
    const found = await findGraphRun(context, values.argument(0), values.text("graph"));
    const { graph, runId } = found;
    const fork = await graph.fork(runId, await findAt(graph, runId, from), changes);
    context.print.note(`run ${fork.runId}, a fork of ${runId} at step ${fork.step}`);
    return go(context, graph, fork.runId, (signal) => graph.resume(fork.runId, { signal }));
  },
};
