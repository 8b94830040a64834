import type { LogPlace } from "../../observers/run-files.js";
import { type Command, log as logOption, run } from "../command.js";
import type { Context } from "../context.js";
import { findRun } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** `waymark show`. */
export const command: Command = {
  name: "show",
  summary: "Show what a run did, how long it took, what it cost and what comes next",
  details:
    "elapsed is the time from the start to the last save; worked is the time that nodes ran. An event " +
    "log (eventLog of waymark/observers/event-log) adds resumes, repeated work and unsaved steps.",
  arguments: [run],
  options: [
    logOption,
    { flags: "--markdown", text: "print Markdown" },
    { flags: "--verbose", text: "print the stack of the run's error, too" },
  ],
  examples: ["waymark show 019a2f --verbose", "waymark show monday --markdown > monday.md"],
  run: async (context, values) => {
    const opened = await context.store();
    const [{ report, toMarkdown }, { nextAction }, { isLive }, { newestOf }] = await Promise.all([
      import("../../report/index.js"),
      import("../next-action.js"),
      import("../store/live.js"),
      import("../store/find.js"),
    ]);
    const log = await context.log(opened);
    const runId = await logged(opened, values.argument(0), log);
    const redaction = await context.redaction();
    const store = redaction.store(opened.store);
    // Before the run itself: one that ends in between is over, and was not left.
    const live = await isLive(store, runId);
    const found = redaction.report(
      await report(runId, { store, ...(log !== undefined && { log }) }),
    );
    const { print } = context;
    const state = await newestOf(opened, runId, (type, data) => {
      if (type === "checkpoint.warning" && "message" in data) print.note(data.message);
    });
    const next = await nextAction(context, state, live, found);
    const shown = { ...found, nextStep: next.node };
    const most = await longestRun(context, opened, state?.graph);
    if (print.json) {
      print.line({ ...shown, maxSteps: most ?? null, live: next.live, waitsFor: next.waitsFor });
    } else if (values.flag("markdown")) {
      print.text(toMarkdown(shown));
    } else {
      const { reportText } = await import("../output/report-text.js");
      print.text(reportText(shown, next, most, print, values.flag("verbose")));
    }
    return undefined;
  },
};

/** How many steps a run of this graph has at most; `undefined` if it has cycles, or nobody knows it. */
async function longestRun(
  context: Context,
  { store }: OpenStore,
  graph: { readonly name: string; readonly fingerprint: string } | undefined,
): Promise<number | undefined> {
  if (graph === undefined) return undefined;
  const { longestPath } = await import("../../graph/description.js");
  try {
    const { graphs } = await context.config();
    const saved = await store.topology?.(graph.fingerprint);
    const known = saved ?? (graphs && (await context.graph(graph.name)).topology);
    return known && longestPath(known);
  } catch {
    // A command that only looks at a run works without its graph.
    return undefined;
  }
}

/** A run whose checkpoints are gone may still have its log. */
async function logged(
  opened: OpenStore,
  given: string,
  log: LogPlace | undefined,
): Promise<string> {
  try {
    return (await findRun(opened, given)).runId;
  } catch (error) {
    if (log === undefined) throw error;
    const { readEventLog } = await import("../../observers/event-log/reader.js");
    for await (const _line of readEventLog(log, given)) return given;
    throw error;
  }
}
