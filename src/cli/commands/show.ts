import { type CheckpointStore, isNewest, wrap } from "../../checkpoint/store.js";
import type { LogPlace } from "../../observers/run-files.js";
import { at, type Command, log as logOption, run } from "../command.js";
import { LongestRuns } from "../longest-runs.js";
import { findAt, findRun, type NamedRun, type SeenState, seeState } from "../store/find.js";
import type { OpenStore } from "../store/open.js";

/** `waymark show`. */
export const command: Command = {
  name: "show",
  summary: "Show what a run did, how long it took, what it cost and what comes next",
  details:
    "elapsed is the time from the start to the last save; worked is the time that nodes ran. An event " +
    "log (eventLog of waymark/observers/event-log) adds repeated work and unsaved steps. For an earlier " +
    "checkpoint it shows what the run had done by then.",
  arguments: [run],
  options: [
    at,
    logOption,
    { flags: "--markdown", text: "print Markdown" },
    { flags: "--verbose", text: "print the stack of the run's error, too" },
  ],
  examples: ["waymark show 019a2f --verbose", "waymark show monday --markdown > monday.md"],
  run: async (context, values) => {
    const opened = await context.store();
    const [{ report, toMarkdown }, { nextAction }, { isLive }] = await Promise.all([
      import("../../report/index.js"),
      import("../next-action.js"),
      import("../store/live.js"),
    ]);
    const log = await context.log(opened);
    const named = await logged(opened, values.argument(0), log);
    const { runId } = named;
    const place = await findAt(opened.store, named, values.text("at"));
    const redaction = await context.redaction();
    let seen: Partial<SeenState> = {};
    const load: CheckpointStore["load"] = async (id, given) => {
      const loaded = await seeState(opened.store, id, given);
      seen = loaded;
      return loaded.state as never;
    };
    const store = redaction.store(wrap(opened.store, { load: () => load }));
    // Asked before the run is loaded: a run that ends in between has ended, and was not abandoned.
    const live = await isLive(store, runId);
    const found = redaction.report(
      await report(runId, { store, ...(log !== undefined && { log }), ...place }),
    );
    const { print } = context;
    const { state, warnings = [] } = seen;
    const newest = await nextAction(context, state, live, found);
    const replay = context.command("replay", state?.checkpointId ?? runId);
    const next = isNewest(place) ? newest : { ...newest, live: null, command: replay };
    const shown = { ...found, nextStep: next.node };
    const most = await new LongestRuns(context, opened.store).of(state?.graph);
    if (print.json) {
      const { live: isLiveNow, waitsFor } = next;
      print.line({ ...shown, maxSteps: most ?? null, live: isLiveNow, waitsFor, warnings });
    } else if (values.flag("markdown")) {
      print.text(toMarkdown(shown));
    } else {
      const { reportText } = await import("../output/report-text.js");
      print.text(reportText(shown, next, most, print, values.flag("verbose")));
    }
    for (const warning of warnings) print.note(warning);
    return undefined;
  },
};

/** A run whose checkpoints are gone may still have its log. */
async function logged(
  opened: OpenStore,
  given: string,
  log: LogPlace | undefined,
): Promise<NamedRun> {
  try {
    return await findRun(opened, given);
  } catch (error) {
    if (log === undefined) throw error;
    const { readEventLog } = await import("../../observers/log/reader.js");
    for await (const _line of readEventLog(log, given)) return { runId: given, at: {} };
    throw error;
  }
}
