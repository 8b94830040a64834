import type { LogPlace } from "../../observers/run-files.js";
import type { Command } from "../command.js";
import { findRun } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** `waymark show`. */
export const command: Command = {
  name: "show",
  summary: "Show what a run did, took and cost, and what comes next",
  details:
    "How long steps took, and what was done in vain, is known where the run's events were logged " +
    "(eventLog of waymark/observers/event-log).",
  arguments: [{ name: "run", text: "the run's id, or its beginning", completes: "run" }],
  options: [
    { flags: "--log <place>", text: "the event log: a folder, or a file that ends in .jsonl" },
    { flags: "--markdown", text: "print Markdown" },
  ],
  examples: ["waymark show 019a2f", "waymark show monday --markdown > monday.md"],
  run: async (context, values) => {
    const opened = await context.store();
    const [{ report, toMarkdown }, { outlook }, { livingIn }] = await Promise.all([
      import("../../report/index.js"),
      import("../outlook.js"),
      import("../store/living.js"),
    ]);
    const log = await context.log(opened);
    const runId = await logged(opened, values.argument(0), log);
    const redaction = await context.redaction();
    const store = redaction.store(opened.store);
    // Before the run itself: one that ends in between is over, not left alone.
    const isLiving = await livingIn(opened);
    const found = redaction.report(
      await report(runId, { store, ...(log !== undefined && { log }) }),
    );
    const seen = await outlook(context, opened, found, isLiving);
    const shown = { ...found, nextStep: found.nextStep ?? seen.next };
    const { print } = context;
    if (print.json) print.line({ ...shown, live: seen.live, waitsFor: seen.waitsFor });
    else if (values.flag("markdown")) print.text(toMarkdown(shown));
    else {
      const { reportText } = await import("../output/report-text.js");
      print.text(reportText(shown, seen, print, Date.now()));
    }
    return undefined;
  },
};

/** A run whose checkpoints are gone is still known by its log. */
async function logged(
  opened: OpenStore,
  given: string,
  log: LogPlace | undefined,
): Promise<string> {
  try {
    return await findRun(opened, given);
  } catch (error) {
    if (log === undefined) throw error;
    const { readEventLog } = await import("../../observers/event-log/reader.js");
    for await (const _line of readEventLog(log, given)) return given;
    throw error;
  }
}
