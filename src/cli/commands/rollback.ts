import { at, type Command, run, yes } from "../command.js";
import { usage } from "../exit.js";
import { LongestRuns } from "../longest-runs.js";
import { lookOf } from "../output/style.js";
import { stepsText } from "../output/units.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark rollback`. */
export const command: Command = {
  name: "rollback",
  summary: "Set a run back to a checkpoint; its history stays, and nothing runs",
  arguments: [run],
  options: [{ ...at, text: "a step, a checkpoint's id, a node or a phase to go back to" }, yes],
  examples: ["waymark rollback 019a2f --at 2", "waymark rollback 019a2f --at draft --yes"],
  run: async (context, values) => {
    const [{ rollBackRun }, { checkFree }] = await Promise.all([
      import("../../checkpoint/fork.js"),
      import("../execution/graph-run.js"),
    ]);
    const opened = await context.store("write");
    const { store } = opened;
    const named = await findRun(opened, values.argument(0));
    const { runId } = named;
    const place = await findAt(store, named, values.text("at"));
    if (Object.keys(place).length === 0) {
      throw usage("rollback needs --at", `${context.command("history", runId)} shows the steps`);
    }
    await checkFree(context, opened, runId);
    const target = await store.load(runId, place);
    const where = `step ${target.step}${target.checkpointNode && `, after ${target.checkpointNode}`}`;
    await context.confirm(`Set run ${runId} back to ${where}?`);
    const { step, status, checkpointId } = await rollBackRun(store, target);
    const most = await new LongestRuns(context, store).of(target.graph);
    const { print } = context;
    print.result({ runId, step, status, checkpointId }, () =>
      print.facts([
        ["run", runId],
        ["status", status, lookOf(status)],
        ["steps", stepsText(step, most)],
        ["continue", context.command("resume", runId)],
      ]),
    );
    return undefined;
  },
};
