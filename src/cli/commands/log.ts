import { type Command, log, run } from "../command.js";
import { CommandError, exit, missing } from "../exit.js";
import { logText } from "../output/log-line.js";
import { findRun } from "../store/find.js";

const POLL = 250;

/** `waymark log`. */
export const command: Command = {
  name: "log",
  summary: "Print the events of a run from its log",
  details:
    "The log is what eventLog of waymark/observers/event-log writes, in the store's folder by default. " +
    "With --json it prints a line of JSON for each event.",
  arguments: [run],
  options: [
    log,
    {
      flags: "--event <name>",
      text: "only events whose name starts with this: node.",
      many: true,
    },
    { flags: "--follow", text: "keep printing events until the run ends" },
  ],
  examples: ["waymark log 019a2f --event node. --event graph.", "waymark log 019a2f --follow"],
  run: async (context, values) => {
    const opened = await context.store();
    const place = await context.log(opened);
    if (place === undefined)
      throw missing("this store has no folder for logs", "name it: --log FOLDER");
    const [{ isLastLine, LogReader }, { Interrupts }] = await Promise.all([
      import("../../observers/log/reader.js"),
      import("../execution/interrupts.js"),
    ]);
    const given = values.argument(0);
    // A run whose checkpoints are gone may still have its log.
    const { runId } = await findRun(opened, given).catch((error: unknown) => {
      if (error instanceof CommandError && error.exitCode === exit.notFound)
        return { runId: given };
      throw error;
    });
    const reader = new LogReader(place, runId);
    const wanted = values.texts("event");
    const { print, io } = context;
    const isFollowed = values.flag("follow");
    const redaction = await context.redaction();
    const interrupts = new Interrupts(io, () => {});
    try {
      for (let isFirst = true; ; isFirst = false) {
        const lines = await reader.lines();
        for (const line of lines) {
          const isWanted =
            wanted.length === 0 || wanted.some((name) => line.event.startsWith(name));
          if (!isWanted) continue;
          const shown = redaction.line(line);
          print.result(shown, () => logText(shown, print.paint));
        }
        if (isFirst && lines.length === 0 && !isFollowed) {
          throw missing(
            `there is no log of run "${runId}" in ${place.root ?? place.path}`,
            "--log PLACE",
          );
        }
        if (interrupts.happened) return exit.interrupted;
        if (!isFollowed || (lines.length > 0 && lines.slice(-1).some(isLastLine))) return exit.ok;
        await interrupts.sleep(POLL);
      }
    } finally {
      interrupts.end();
    }
  },
};
