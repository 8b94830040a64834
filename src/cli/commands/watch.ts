import type { HistoryEntry } from "../../checkpoint/store.js";
import type { Command } from "../command.js";
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
  summary: "Follow a run that another process works on, until it ends or pauses",
  details:
    "It looks at the store every now and then, and at the run's log where there is one; the run is " +
    "not disturbed. The exit code is 1 when the run fails. With --json it prints a line of JSON for each thing it sees.",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [
    { flags: "--every <ms>", text: `how often to look; ${POLL} by default` },
    { flags: "--log <place>", text: "the event log: a folder, or a file that ends in .jsonl" },
  ],
  examples: ["waymark watch 019a2f", "waymark watch 019a2f --every 2000 --json"],
  run: async (context, values) => {
    const opened = await context.store();
    const runId = await findRun(opened, values.argument(0));
    const [{ RunTail }, { livingIn }, { Interrupts, pause }] = await Promise.all([
      import("../follow/run.js"),
      import("../store/living.js"),
      import("../going/interrupts.js"),
    ]);
    const every = values.count("every", 10) ?? POLL;
    const { print } = context;
    const redaction = await context.redaction();
    const watched = { ...opened, store: redaction.store(opened.store) };
    const tail = new RunTail(watched, runId, await context.log(opened));
    const interrupts = new Interrupts(context.io, () => {});
    try {
      for (let isFirst = true; ; isFirst = false) {
        // Before the run itself: one that ends in between is over, not left alone.
        const isLeft = isFirst && (await livingIn(opened))(runId) === false;
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
          print.noteBelow(`run ${runId} goes on; so does: ${context.command("watch", runId)}`);
          return exit.interrupted;
        }
        if (isLeft) {
          const goOn = context.command("resume", runId);
          print.note(`no process works on run ${runId} now; go on with it: ${goOn}`);
        }
        await pause(every, interrupts.signal);
      }
    } finally {
      interrupts.end();
    }
  },
};

function checkpoint({ print }: Context, entry: HistoryEntry): void {
  const { timestamp, step, node, status, reason } = entry;
  print.result(entry, () => {
    const words = [
      print.paint("dim", plain(timestamp)),
      "checkpoint".padEnd(19),
      plain(node),
      `step ${step}`,
      print.paint(lookOf(status), status),
      print.paint("dim", plain(reason)),
    ];
    return words.filter((word) => word !== "").join("  ");
  });
}
