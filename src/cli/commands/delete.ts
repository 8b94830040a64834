import { removeRunFiles } from "../../observers/remove-run-files.js";
import { type Command, run, yes } from "../command.js";
import { checkFree } from "../execution/graph-run.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";

/** `waymark delete`. */
export const command: Command = {
  name: "delete",
  summary: "Remove runs with all their checkpoints, logs and progress files",
  details: "Checkpoints in quarantine stay. A run that a process is working on is not removed.",
  arguments: [{ ...run, many: true }],
  options: [yes],
  examples: ["waymark delete 019a2f", "waymark delete monday tuesday --yes"],
  run: async (context, values) => {
    const seen = await context.store("read");
    const found = await Promise.all(values.arguments.map((given) => findRun(seen, given)));
    const runIds = [...new Set(found.map(({ runId }) => runId))];
    for (const runId of runIds) await checkFree(context, seen, runId);
    const what = `Remove ${count(runIds.length, "run")} from ${seen.name}?`;
    await context.confirm(what, runIds.join(", "));
    const { store } = await context.store("write");
    const log = await context.log(seen);
    for (const runId of runIds) {
      await store.delete(runId);
      await removeRunFiles(log, runId);
    }
    const end = `${count(runIds.length, "run")} removed`;
    context.print.result({ removed: runIds }, () => [...runIds.map(plain), end].join("\n"));
    return undefined;
  },
};
