import type { RunRecovery } from "../../recovery/recover-runs.js";
import type { Command } from "../command.js";
import { exit, missing } from "../exit.js";
import { errorText } from "../output/error-text.js";
import type { Look } from "../output/style.js";
import type { Column } from "../output/table.js";

const looks: Readonly<Record<RunRecovery["outcome"], Look>> = {
  completed: "green",
  paused: "yellow",
  failed: "red",
  "timed-out": "red",
  "gave-up": "red",
  skipped: "dim",
};

/** A recovered run, with its error as text. */
type Recovered = Omit<RunRecovery, "error"> & { readonly error?: string };

const columns: readonly Column<Recovered>[] = [
  { head: "run", cell: ({ runId }) => runId, least: 12, keepEnd: true },
  { head: "graph", cell: ({ graph }) => graph, least: 8 },
  { head: "outcome", cell: ({ outcome }) => outcome, look: ({ outcome }) => looks[outcome] },
  { head: "tries", cell: ({ attempts }) => String(attempts), right: true },
  { head: "", cell: whyOf, least: 20 },
];

/** `waymark recover`. */
export const command: Command = {
  name: "recover",
  summary: "Continue all runs whose process died",
  details:
    "Completed runs are not touched, paused ones keep waiting, and runs that a live process is working " +
    "on are left alone. It uses the graphs of the config. The exit code is 1 if a run fails.",
  options: [
    {
      flags: "--max-attempts <count>",
      text: "how often to try a run that makes no progress; 3 by default",
    },
    { flags: "--timeout <seconds>", text: "how long one run may take; 300 by default" },
    { flags: "--concurrency <count>", text: "how many runs at once; 4 by default" },
  ],
  examples: ["waymark recover", "waymark recover --max-attempts 1 --timeout 60"],
  run: async (context, values) => {
    const [{ recoverRuns }, { loadGraphs }, { inStore }, { Interrupts }] = await Promise.all([
      import("../../recovery/recover-runs.js"),
      import("../config/graphs.js"),
      import("../execution/graph-run.js"),
      import("../execution/interrupts.js"),
    ]);
    const loaded = Object.entries(await loadGraphs(await context.config()));
    if (loaded.length === 0) {
      throw missing("the config has no graphs", "name them under graphs in waymark.config.ts");
    }
    const bound = loaded.map(async ([key, graph]) => [key, await inStore(context, graph)] as const);
    const graphs = Object.fromEntries(await Promise.all(bound));
    const { print } = context;
    const interrupts = new Interrupts(context.io, () => print.noteBelow("stopping …"));
    const [attempts, seconds, concurrency] = [
      values.count("maxAttempts", 1),
      values.count("timeout", 1),
      values.count("concurrency", 1),
    ];
    try {
      const runs = await recoverRuns({
        store: (await context.store("write")).store,
        graphs,
        signal: interrupts.signal,
        ...(attempts !== undefined && { maxAttempts: attempts }),
        ...(seconds !== undefined && { timeoutMs: seconds * 1000 }),
        ...(concurrency !== undefined && { concurrency }),
      });
      const redaction = await context.redaction();
      const shown = runs.map(({ error, ...run }) => ({
        ...run,
        ...(error !== undefined && { error: errorText(error, redaction) }),
      }));
      print.result(shown, () =>
        shown.length === 0 ? "no run to recover" : print.table(columns, shown),
      );
      if (interrupts.happened) return exit.interrupted;
      const isGood = runs.every(({ outcome }) =>
        ["completed", "paused", "skipped"].includes(outcome),
      );
      return isGood ? exit.ok : exit.problems;
    } finally {
      interrupts.end();
    }
  },
};

function whyOf({ reason = "", fellBack, error = "" }: Recovered): string {
  const why = [reason, fellBack ? "fell back by one checkpoint" : "", error];
  return why.filter((part) => part !== "").join("; ");
}
