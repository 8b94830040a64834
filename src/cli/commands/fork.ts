import { at, type Command, run } from "../command.js";
import { usage } from "../exit.js";
import { LongestRuns } from "../longest-runs.js";
import { lookOf } from "../output/style.js";
import { stepsText } from "../output/units.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark fork`. */
export const command: Command = {
  name: "fork",
  summary: "Make a new run from a checkpoint, without running anything",
  arguments: [run],
  options: [
    at,
    { flags: "--set <key=value>", text: "change the data; JSON, or text", many: true },
    { flags: "--data <json>", text: "changes to the data: JSON, @file.json, or - for a pipe" },
  ],
  examples: ["waymark fork 019a2f --at 2 --set topic=dolmens", "waymark fork 019a2f --at draft"],
  run: async (context, values) => {
    const [{ forkRun }, { readChanges, readObject }] = await Promise.all([
      import("../../checkpoint/fork.js"),
      import("../data.js"),
    ]);
    const data = values.text("data");
    const changes = {
      ...(data !== undefined && (await readObject(context.io, "--data", data))),
      ...(await readChanges(context.io, "--set", values.texts("set"))),
    };
    const opened = await context.store("write");
    const { store } = opened;
    if (store.history === undefined) throw usage(`${opened.name} keeps no history to fork from`);
    const source = await findRun(opened, values.argument(0));
    const place = await findAt(store, source, values.text("at"));
    const forked = await forkRun(store, source.runId, place, changes);
    const { runId, step, status, parent } = forked;
    const most = await new LongestRuns(context, store).of(forked.graph);
    const { print } = context;
    print.result({ runId, step, status, parent }, () =>
      print.facts([
        ["run", runId],
        ["status", status, lookOf(status)],
        ["steps", stepsText(step, most)],
        ["fork of", source.runId],
        ["continue", context.command("resume", runId)],
      ]),
    );
    return undefined;
  },
};
