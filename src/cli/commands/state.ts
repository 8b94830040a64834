import { at, type Command, run } from "../command.js";
import { valueAt } from "../output/path.js";
import { plainLines, toJson } from "../output/text.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark state`. */
export const command: Command = {
  name: "state",
  summary: "Print the State of a run, or a part of it",
  details: "Values that JSON has no type for are written with a tag, as in a checkpoint.",
  arguments: [run],
  options: [at, { flags: "--path <path>", text: "only what is at this path: data.pages.0" }],
  examples: ["waymark state 019a2f --path data.text", "waymark state 019a2f --at review --json"],
  run: async (context, values) => {
    const opened = await context.store();
    const { store } = opened;
    const named = await findRun(opened, values.argument(0));
    const place = await findAt(store, named, values.text("at"));
    const state = await store.load<object>(named.runId, place);
    const json = (await context.redaction()).state(state);
    const path = values.text("path");
    const value = path === undefined ? json : valueAt(json, path);
    context.print.result(value, () =>
      typeof value === "string" ? plainLines(value) : toJson(value, 2),
    );
    return undefined;
  },
};
