import type { HistoryEntry } from "../../checkpoint/store.js";
import { type Command, log, run } from "../command.js";
import type { Context } from "../context.js";
import { exit } from "../exit.js";
import { logText } from "../output/log-line.js";
import { lookOf } from "../output/style.js";
import { plain } from "../output/text.js";
import { findRun } from "../store/find.js";

const POLL = 500;

/** `waymark watch`. */
export const command: Command = {
  name: "watch",
  summary: "Follow a run that another process is working on, until it ends or pauses",
  details:
    "It polls the store, and the run's log if there is one; the run is not disturbed. The exit code is " +
    "1 if the run fails. With --json it prints a line of JSON for each event or checkpoint.",
  arguments: [run],
  options: [{ flags: "--every <ms>", text: `how often to poll; ${POLL} by default` }, log],
  examples: ["waymark watch 019a2f", "waymark watch 019a2f --every 2000 --json"],
  run: async (context, values) => {
    const opened = await context.store();
    const { runId } = await findRun(opened, values.argument(0));
    const [{ RunTail }, { isLive }, { Interrupts }] = await Promise.all([
      import("../follow/run.js"),
      import("../store/live.js"),
      import("../execution/interrupts.js"),
    ]);
    const every = values.count("every", 10) ?? POLL;
    const { print } = context;
    const redaction = await context.redaction();
    const store = redaction.store(opened.store);
    const tail = new RunTail(store, runId, await context.log(opened));
    const interrupts = new Interrupts(context.io, () => {});
    try {
      for (let isFirst = true; ; isFirst = false) {
        // Asked before the run is read: a run that ends in between has ended, and was not abandoned.
        const isLeft = isFirst && (await isLive(opened.store, runId)) === false;
        const { events, checkpoints, end } = await tail.next();
        for (const event of events) {
          const shown = redaction.line(event);
          print.result(shown, () => logText(shown, print.paint));
        }
        for (const entry of checkpoints) checkpoint(context, entry);
        if (end !== undefined) {
          print.note(`run ${runId} ${end.text}`);
          return end.isGood ? exit.ok : exit.problems;
        }
        if (interrupts.happened) {
          print.noteBelow(`run ${runId} continues; follow it: ${context.command("watch", runId)}`);
          return exit.interrupted;
        }
        if (isLeft) {
          const resume = context.command("resume", runId);
          print.note(`no process is working on run ${runId}; continue it: ${resume}`);
        }
        await interrupts.sleep(every);
      }
    } finally {
      interrupts.end();
    }
  },
};

function checkpoint({ print }: Context, entry: HistoryEntry): void {
  const { savedAt, step, node, status, reason } = entry;
  print.result(entry, () => {
    const words = [
      print.paint("dim", plain(savedAt)),
      "checkpoint".padEnd(19),
      plain(node),
      `step ${step}`,
      print.paint(lookOf(status), status),
      print.paint("dim", plain(reason)),
    ];
    return words.filter((word) => word !== "").join("  ");
  });
}
