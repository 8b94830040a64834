import type { Command } from "../command.js";
import { exit, usage } from "../exit.js";
import type { Finding } from "../inspect/finding.js";
import type { Inspection } from "../inspect/store.js";
import type { Printer } from "../output/printer.js";
import type { Column } from "../output/table.js";
import { plain } from "../output/text.js";
import { count } from "../output/units.js";
import { findRun } from "../store/find.js";

/** `waymark validate`. */
export const command: Command = {
  name: "validate",
  summary: "Check that checkpoints are what was written, and that none is missing",
  details:
    "It looks at hashes, fields, the chain of checkpoints, forks whose origin is gone, and what a " +
    "dead process left. It changes nothing. The exit code is 1 when there is a problem.",
  arguments: [
    { name: "run", text: "the run's id; all runs by default", optional: true, completes: "run" },
  ],
  options: [{ flags: "--all", text: "all runs, as without a run" }],
  examples: ["waymark validate", "waymark validate 019a2f --json"],
  run: async (context, values) => {
    const opened = await context.store();
    const given = values.arguments[0];
    if (given !== undefined && values.flag("all"))
      throw usage("a run and --all exclude each other");
    const all = await opened.store.list();
    const runs = given === undefined ? all : [await findRun(opened, given)];
    const { inspect } = await import("../inspect/store.js");
    const found = await inspect(opened, runs, all);
    const isGood = found.findings.every(({ level }) => level !== "problem");
    context.print.result({ ok: isGood, ...found }, () => inspectionText(found, context.print));
    const isMendable = found.findings.some(
      ({ level, what }) => level === "problem" && mendable.has(what),
    );
    if (isMendable) {
      const repair = context.command("repair", given === undefined ? given : runs[0]);
      context.print.note(`what is corrupt is set aside by: ${repair}`);
    }
    return isGood ? exit.ok : exit.problems;
  },
};

/** What `repair` can do something about. */
const mendable: ReadonlySet<Finding["what"]> = new Set(["corrupt", "lost", "log"]);

const columns: readonly Column<Finding>[] = [
  {
    head: "level",
    cell: ({ level }) => level,
    look: ({ level }) => (level === "problem" ? "red" : "dim"),
  },
  { head: "what", cell: ({ what }) => what },
  { head: "run", cell: ({ runId }) => runId, least: 12 },
  { head: "seq", cell: ({ sequence }) => (sequence === 0 ? "" : String(sequence)), right: true },
];

/** What was found, for a terminal. */
export function inspectionText(
  { runs, checkpoints, findings }: Inspection,
  print: Printer,
): string {
  const problems = findings.filter(({ level }) => level === "problem").length;
  const looked = `${count(checkpoints, "checkpoint")} of ${count(runs, "run")}`;
  const end =
    problems === 0
      ? print.paint("green", `${looked}: all are what was written`)
      : print.paint("red", `${looked}: ${count(problems, "problem")}`);
  const [head = "", ...rows] = print.table(columns, findings).split("\n");
  // What is wrong may be long, and is what matters: it has a line of its own.
  const lines = rows.flatMap((row, at) => [row, `  ${plain(findings[at]?.text ?? "")}`]);
  return findings.length === 0 ? end : [head, ...lines, "", end].join("\n");
}
