import { resolve } from "node:path";
import { type Command, run as runArgument } from "../command.js";
import { exit, usage } from "../exit.js";
import { type Finding, findingText, type Inspection, repairable } from "../inspect.js";
import type { Printer } from "../output/printer.js";
import type { Column } from "../output/table.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";

/** `waymark validate`. */
export const command: Command = {
  name: "validate",
  summary: "Check that checkpoints are intact and that none is missing",
  details:
    "It checks hashes, fields, the chain of checkpoints, forks whose origin is gone, and leftovers of a dead " +
    "process. It changes nothing. The exit code is 1 if there is a problem.",
  arguments: [{ ...runArgument, text: `${runArgument.text}; all runs by default`, optional: true }],
  options: [
    { flags: "--all", text: "all runs, as without a run" },
    { flags: "--file <file>", text: "check one checkpoint file instead of a store" },
  ],
  examples: [
    "waymark validate 019a2f --json",
    "waymark validate --file .waymark/monday/checkpoint_0003.json",
  ],
  run: async (context, values) => {
    const { print } = context;
    const given = values.arguments[0];
    const file = values.text("file");
    const ways = [given !== undefined, values.flag("all"), file !== undefined];
    if (ways.filter(Boolean).length > 1) throw usage("use only one of a run, --all and --file");
    const { inspect, inspectFile } = await import("../inspect.js");
    let runId: string | undefined;
    let found: Inspection;
    if (file === undefined) {
      const opened = await context.store();
      runId = given === undefined ? undefined : (await findRun(opened, given)).runId;
      found = await inspect(opened, runId);
    } else {
      found = await inspectFile(resolve(context.io.cwd, file), (await context.config()).codec);
    }
    const isGood = found.findings.every(({ level }) => level !== "problem");
    print.result({ ok: isGood, ...found }, () => inspectionText(found, print));
    const isBroken = found.findings.some(({ problem }) => repairable.has(problem));
    if (isBroken && file === undefined) {
      print.note(`set corrupt checkpoints aside: ${context.command("repair", runId)}`);
    }
    return isGood ? exit.ok : exit.problems;
  },
};

const columns: readonly Column<Finding>[] = [
  {
    head: "level",
    cell: ({ level }) => level,
    look: ({ level }) => (level === "problem" ? "red" : "dim"),
  },
  { head: "what", cell: ({ problem }) => problem },
  { head: "run", cell: ({ runId }) => runId, least: 12, keepEnd: true },
  { head: "seq", cell: ({ sequence }) => (sequence === 0 ? "" : String(sequence)), right: true },
];

/** The findings as text for a terminal. */
export function inspectionText(
  { runs, checkpoints, findings }: Inspection,
  print: Printer,
): string {
  const problems = findings.filter(({ level }) => level === "problem").length;
  const checked = `${count(checkpoints, "checkpoint")} of ${count(runs, "run")}`;
  const end =
    problems === 0
      ? print.paint("green", `${checked}: no problems`)
      : print.paint("red", `${checked}: ${count(problems, "problem")}`);
  const [head = "", ...rows] = print.table(columns, findings).split("\n");
  // The description may be long and matters most, so it gets a line of its own.
  const lines = findings.flatMap((one, at) => [rows[at] ?? "", `  ${plain(findingText(one))}`]);
  return findings.length === 0 ? end : [head, ...lines, "", end].join("\n");
}
