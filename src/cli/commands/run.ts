import { type Command, yes } from "../command.js";
import { usage } from "../exit.js";

/** `waymark run`. */
export const command: Command = {
  name: "run",
  summary: "Start a run of a graph, or go on with it",
  details:
    "The run is saved in the store that --store, WAYMARK_STORE or the config names, and its " +
    "checkpoints stay when it completes; where none of them names one, the graph saves as its own " +
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
    { flags: "--id <run>", text: "the run's id; a run that is there goes on" },
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
    if (isForced && id === undefined)
      throw usage("--force wants the run to start over", "--id RUN");
    const [{ go }, { inStore, checkFree }, { readObject }, { State }] = await Promise.all([
      import("../going/go.js"),
      import("../going/graph-run.js"),
      import("../data.js"),
      import("../../state/state.js"),
    ]);
    const data = await readObject(context.io, "--data", values.text("data") ?? "{}");
    const graph = await inStore(context, await context.graph(values.argument(0)));
    const state = State.create(data, id === undefined ? {} : { runId: id });
    if (id !== undefined) {
      const isGiven = await context.isStoreGiven();
      const opened = await context.store(isForced || isGiven ? "write" : "read");
      await checkFree(context, opened, id);
      if (isForced && (await opened.store.list()).includes(id)) {
        await context.confirm(`Remove run ${id} in ${opened.name} and start over?`);
        await opened.store.delete(id);
      }
    }
    context.print.note(`run ${state.runId}`);
    return go(context, graph, state.runId, (signal) =>
      id === undefined ? graph.execute(state, { signal }) : graph.resumeOrStart(state, { signal }),
    );
  },
};
