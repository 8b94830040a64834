import { type Command, yes } from "../command.js";
import { usage } from "../exit.js";
import { lookOf } from "../output/style.js";
import { findAt, findRun } from "../store/find.js";

/** `waymark rollback`. */
export const command: Command = {
  name: "rollback",
  summary: "Set a run back to a checkpoint; its history stays, and nothing runs",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [{ flags: "--to <checkpoint>", text: "the step or checkpoint to set it back to" }, yes],
  examples: ["waymark rollback 019a2f --to 2"],
  run: async (context, values) => {
    const to = values.text("to");
    if (to === undefined) throw usage("rollback wants --to", "waymark history RUN shows the steps");
    const [{ rollBackRun }, { checkFree }] = await Promise.all([
      import("../going/set-back.js"),
      import("../going/graph-run.js"),
    ]);
    const opened = await context.store("write");
    const { store } = opened;
    const runId = await findRun(opened, values.argument(0));
    await checkFree(context, opened, runId);
    const at = await findAt(store, runId, to);
    const target = await store.load(runId, at);
    const where = `step ${target.step}${target.checkpointNode && `, after ${target.checkpointNode}`}`;
    await context.confirm(`Set run ${runId} back to ${where}?`);
    const { step, status, checkpointId } = await rollBackRun(store, runId, at);
    const { print } = context;
    print.result({ runId, step, status, checkpointId }, () =>
      print.facts([
        ["run", runId],
        ["status", status, lookOf(status)],
        ["steps", String(step)],
        ["go on", context.command("resume", runId)],
      ]),
    );
    return undefined;
  },
};
