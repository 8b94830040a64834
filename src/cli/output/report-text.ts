import type { RunReport, StepReport } from "../../report/record.js";
import type { Outlook } from "../outlook.js";
import type { Printer } from "./printer.js";
import { lookOf, statusText } from "./style.js";
import type { Column } from "./table.js";
import { plain } from "./text.js";
import { ago, count, dollars, duration, grouped, seconds, usageText } from "./units.js";

/** A report for a terminal: facts, steps, decisions. */
export function reportText(
  report: RunReport,
  outlook: Outlook,
  print: Printer,
  now: number,
): string {
  const parts = [print.facts(factsOf(report, outlook, now))];
  if (report.steps.length > 0) parts.push(print.table(columnsOf(report), report.steps));
  if (report.decisions.length > 0) parts.push(decisionsText(report, print));
  return parts.join("\n\n");
}

function factsOf(
  report: RunReport,
  { live, waitsFor, goOn }: Outlook,
  now: number,
): Parameters<Printer["facts"]>[0] {
  const { status, totals, repeated, error, confidence, startedAt, updatedAt } = report;
  const moment = (time: string): string => `${seconds(time)}, ${ago(time, now)}`;
  return [
    ["run", report.runId],
    ["graph", report.graph],
    ["status", statusText(status, live), lookOf(status)],
    ["started", startedAt === undefined ? undefined : moment(startedAt)],
    ["updated", moment(updatedAt)],
    ["elapsed", report.elapsedMs === undefined ? undefined : duration(report.elapsedMs)],
    ["resumes", report.resumes === 0 ? undefined : String(report.resumes)],
    ["steps", String(report.completedSteps)],
    ["last", report.lastStep],
    ["next", report.nextStep],
    ["usage", usageText(totals.usage)],
    ["repeated", repeated.visits === 0 ? undefined : `${count(repeated.visits, "visit")} in vain`],
    ["confidence", confidence === undefined ? undefined : String(confidence)],
    [
      "error",
      error === undefined ? undefined : `${error.name} in ${error.node}: ${error.message}`,
      "red",
    ],
    ...waitsFor.map((text) => ["waits for", text, "yellow"] as const),
    [live === true ? "see" : "go on", goOn],
  ];
}

function columnsOf({ steps, startedAt }: RunReport): readonly Column<StepReport>[] {
  const isLogged = steps.some(({ durationMs }) => durationMs !== undefined);
  const all: readonly Column<StepReport>[] = [
    { head: "#", cell: ({ step }) => String(step), right: true },
    { head: "node", cell: ({ node }) => node, least: 10 },
    { head: "completed", cell: ({ completedAt }) => seconds(completedAt), leave: 1 },
    isLogged
      ? { head: "took", cell: ({ durationMs }) => optional(durationMs, duration), right: true }
      : {
          head: "since last",
          cell: (step) => optional(sinceLast(step, steps, startedAt), (ms) => `+${duration(ms)}`),
          right: true,
        },
    { head: "tries", cell: ({ attempts }) => (attempts > 1 ? String(attempts) : ""), right: true },
    {
      head: "tokens",
      cell: ({ usage }) => optional(usage, (used) => tokens(used.inputTokens + used.outputTokens)),
      right: true,
    },
    { head: "cost", cell: ({ usage }) => optional(usage?.costUsd, dollars), right: true },
    { head: "outputs", cell: ({ outputs }) => Object.keys(outputs).join(", "), least: 8 },
    {
      head: "",
      cell: ({ saved }) => (saved ? "" : "not saved, runs again on resume"),
      look: () => "yellow",
      least: 9,
    },
  ];
  // A column that has nothing to tell only takes room.
  return all.filter((column, at) => at < 2 || steps.some((step) => column.cell(step) !== ""));
}

function optional<T>(value: T | undefined, text: (value: T) => string): string {
  return value === undefined ? "" : text(value);
}

function tokens(count: number): string {
  return count === 0 ? "" : grouped(count);
}

/** How long after the step before, or the start, a step was completed; `undefined` where that is not known. */
function sinceLast(
  { step, completedAt }: StepReport,
  steps: readonly StepReport[],
  startedAt: string | undefined,
): number | undefined {
  const before = steps.find((one) => one.step === step - 1)?.completedAt;
  const from = step === 1 ? startedAt : before;
  return from === undefined ? undefined : Math.max(0, Date.parse(completedAt) - Date.parse(from));
}

function decisionsText({ decisions }: RunReport, print: Printer): string {
  const lines = decisions.map(({ node, description, rationale, confidence }) => {
    const why = rationale === undefined ? "" : `: ${rationale}`;
    const sure = confidence === undefined ? "" : ` (${confidence})`;
    return `  ${print.paint("dim", plain(node))}  ${plain(`${description}${why}${sure}`)}`;
  });
  return [print.paint("bold", "decisions"), ...lines].join("\n");
}
