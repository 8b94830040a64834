import { at, CHECKPOINT, type Command, graph as graphOption, run } from "../command.js";
import { usage } from "../exit.js";
import { findAt } from "../store/find.js";

/** `waymark replay`. */
export const command: Command = {
  name: "replay",
  summary: "Run again from an earlier checkpoint, as a fork; the original stays as it is",
  arguments: [run],
  options: [
    { ...at, text: `${CHECKPOINT} to continue after` },
    { flags: "--set <key=value>", text: "change the data first; JSON, or text", many: true },
    graphOption,
  ],
  examples: ["waymark replay 019a2f --at 2", "waymark replay 019a2f --at 0 --set topic=dolmens"],
  run: async (context, values) => {
    const [{ execute }, { findGraphRun }, { readChanges }] = await Promise.all([
      import("../execution/execute.js"),
      import("../execution/graph-run.js"),
      import("../data.js"),
    ]);
    const changes = await readChanges(context.io, "--set", values.texts("set"));
    const found = await findGraphRun(context, values.argument(0), values.text("graph"));
    const { graph, runId } = found;
    const place = await findAt(graph, found, values.text("at"));
    if (Object.keys(place).length === 0) {
      throw usage("replay needs --at", `${context.command("history", runId)} shows the steps`);
    }
    const fork = await graph.fork(runId, place, changes);
    context.print.note(`run ${fork.runId}, a fork of ${runId} at step ${fork.step}`);
    const { audit } = context;
    return execute(context, graph, fork.runId, (signal) =>
      graph.resume(fork.runId, { signal, audit }),
    );
  },
};
