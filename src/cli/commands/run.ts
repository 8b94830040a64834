import { type Command, yes } from "../command.js";
import { usage } from "../exit.js";

/** `waymark run`. */
export const command: Command = {
  name: "run",
  summary: "Start a run of a graph, or continue it",
  details:
    "The run is saved in the store that --store, WAYMARK_STORE or the config names, and its " +
    "checkpoints are kept when it completes. If none of them names one, the graph saves as its own " +
    "config says. Ctrl-C stops the run so that it can be resumed.",
  arguments: [
    {
      name: "graph",
      text: "its name in the config, or a module: ./graph.ts#graph",
      completes: "graph",
    },
  ],
  options: [
    { flags: "--data <json>", text: "the first data: JSON, @file.json, or - for a pipe" },
    { flags: "--id <run>", text: "the run's id; a run that exists is continued" },
    { flags: "--force", text: "start over: remove the run of that id first" },
    yes,
  ],
  examples: [
    'waymark run article --data \'{"topic":"cairns"}\'',
    "waymark run ./graph.ts#graph --id monday --data @monday.json --force",
  ],
  run: async (context, values) => {
    const id = values.text("id");
    const isForced = values.flag("force");
    if (isForced && id === undefined) throw usage("--force needs --id", "it names the run");
    const [{ execute }, { inStore, checkFree }, { readObject }, { State }] = await Promise.all([
      import("../execution/execute.js"),
      import("../execution/graph-run.js"),
      import("../data.js"),
      import("../../state/state.js"),
    ]);
    const data = await readObject(context.io, "--data", values.text("data") ?? "{}");
    const graph = await inStore(context, await context.graph(values.argument(0)));
    const state = State.create(data, id === undefined ? {} : { runId: id });
    if (id !== undefined && isForced) {
      const opened = await context.store("write");
      if ((await opened.store.list()).includes(id)) {
        await checkFree(context, opened, id);
        await context.confirm(`Remove run ${id} in ${opened.name} and start over?`);
        await opened.store.delete(id);
      }
    }
    context.print.note(`run ${state.runId}`);
    const { audit } = context;
    return execute(context, graph, state.runId, (signal) =>
      id === undefined
        ? graph.execute(state, { signal, audit })
        : graph.resumeOrStart(state, { signal, audit }),
    );
  },
};
