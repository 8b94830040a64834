import type { RunReport, StepReport } from "../../report/record.js";
import type { Printer } from "./printer.js";
import { lookOf } from "./style.js";
import type { Column } from "./table.js";
import { plain } from "./text.js";
import { dollars, duration } from "./units.js";

/** A report for a terminal: facts, steps, decisions. */
export function reportText(report: RunReport, print: Printer): string {
  const parts = [print.facts(factsOf(report))];
  if (report.steps.length > 0) parts.push(print.table(columnsOf(report), report.steps));
  if (report.decisions.length > 0) parts.push(decisionsText(report, print));
  return parts.join("\n\n");
}

function factsOf(report: RunReport): Parameters<Printer["facts"]>[0] {
  const { status, totals, repeated, error, confidence } = report;
  const { inputTokens, outputTokens, costUsd } = totals.usage;
  const hasUsage = inputTokens + outputTokens + costUsd > 0;
  return [
    ["run", report.runId],
    ["graph", report.graph],
    ["status", status, lookOf(status)],
    ["started", report.startedAt],
    ["updated", report.updatedAt],
    ["elapsed", report.elapsedMs === undefined ? undefined : duration(report.elapsedMs)],
    ["resumes", report.resumes === 0 ? undefined : String(report.resumes)],
    ["steps", String(report.completedSteps)],
    ["last", report.lastStep],
    ["next", report.nextStep],
    [
      "usage",
      hasUsage
        ? `${inputTokens} tokens in, ${outputTokens} out, ${dollars(costUsd) || "$0"}`
        : undefined,
    ],
    ["repeated", repeated.visits === 0 ? undefined : `${repeated.visits} visits were in vain`],
    ["confidence", confidence === undefined ? undefined : String(confidence)],
    [
      "error",
      error === undefined ? undefined : `${error.name} in ${error.node}: ${error.message}`,
      "red",
    ],
  ];
}

function columnsOf({ steps }: RunReport): readonly Column<StepReport>[] {
  const all: readonly (Column<StepReport> & { readonly always?: boolean })[] = [
    { head: "#", cell: ({ step }) => String(step), right: true },
    { head: "node", cell: ({ node }) => node, least: 10 },
    { head: "completed", cell: ({ completedAt }) => completedAt, least: 10 },
    {
      head: "took",
      cell: ({ durationMs }) => (durationMs === undefined ? "" : duration(durationMs)),
      right: true,
    },
    { head: "tries", cell: ({ attempts }) => (attempts > 1 ? String(attempts) : ""), right: true },
    {
      head: "tokens",
      cell: ({ usage }) => (usage ? String(usage.inputTokens + usage.outputTokens) : ""),
      right: true,
    },
    { head: "cost", cell: ({ usage }) => (usage ? dollars(usage.costUsd) : ""), right: true },
    { head: "outputs", cell: ({ outputs }) => Object.keys(outputs).join(", "), least: 8 },
    {
      head: "",
      cell: ({ saved }) => (saved ? "" : "not saved, runs again on resume"),
      look: () => "yellow",
      least: 9,
    },
  ];
  // A column that has nothing to tell only takes room.
  return all.filter((column, at) => at < 2 || steps.some((step) => !isNothing(column.cell(step))));
}

function isNothing(cell: string): boolean {
  return cell === "" || cell === "0";
}

function decisionsText({ decisions }: RunReport, print: Printer): string {
  const lines = decisions.map(({ node, description, rationale, confidence }) => {
    const why = rationale === undefined ? "" : `: ${rationale}`;
    const sure = confidence === undefined ? "" : ` (${confidence})`;
    return `  ${print.paint("dim", plain(node))}  ${plain(`${description}${why}${sure}`)}`;
  });
  return [print.paint("bold", "decisions"), ...lines].join("\n");
}
