import type { Command } from "../command.js";
import { usage } from "../exit.js";
import { lookOf } from "../output/style.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark fork`. */
export const command: Command = {
  name: "fork",
  summary: "Make a new run out of a checkpoint; it runs nothing",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [
    { flags: "--at <checkpoint>", text: "a step, or a checkpoint's id; the newest by default" },
    { flags: "--set <key=value>", text: "change the data; JSON, or text", many: true },
    { flags: "--data <json>", text: "changes to the data: JSON, @file.json, or - for a pipe" },
  ],
  examples: ["waymark fork 019a2f --at 2 --set topic=dolmens"],
  run: async (context, values) => {
    const [{ forkRun }, { readChanges, readObject }] = await Promise.all([
      import("../going/set-back.js"),
      import("../data.js"),
    ]);
    const data = values.text("data");
    const changes = {
      ...(data !== undefined && (await readObject(context.io, "--data", data))),
      ...(await readChanges(context.io, values.texts("set"))),
    };
    const opened = await context.store("write");
    const { store } = opened;
    if (store.history === undefined) throw usage(`${opened.name} keeps no history to fork from`);
    const source = await findRun(opened, values.argument(0));
    const given = values.text("at");
    const at = given === undefined ? {} : await findAt(store, source, given);
    const { runId, step, status, parent } = await forkRun(store, source, at, changes);
    const { print } = context;
    print.result({ runId, step, status, parent }, () =>
      print.facts([
        ["run", runId],
        ["status", status, lookOf(status)],
        ["steps", String(step)],
        ["fork of", source],
        ["go on", context.command("resume", runId)],
      ]),
    );
    return undefined;
  },
};
