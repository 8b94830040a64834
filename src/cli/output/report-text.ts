import type { RunReport, StepReport } from "../../report/record.js";
import type { NextAction } from "../next-action.js";
import type { Printer } from "./printer.js";
import { lookOf, statusText } from "./style.js";
import type { Column } from "./table.js";
import { plain, plainLines } from "./text.js";
import { ago, count, dollars, duration, grouped, seconds, stepsText, usageText } from "./units.js";

/**
 * A report for a terminal: facts, steps, decisions.
 *
 * @param most - the most steps the run can have, if known.
 * @param isVerbose - whether to print the stack of its error.
 */
export function reportText(
  report: RunReport,
  next: NextAction,
  most: number | undefined,
  print: Printer,
  isVerbose: boolean,
): string {
  const { steps, decisions, error } = report;
  const parts = [print.facts(factsOf(report, next, most))];
  if (isVerbose && error?.stack !== undefined) parts.push(plainLines(error.stack));
  if (steps.length > 0) parts.push(print.table(columnsOf(steps), steps));
  if (decisions.length > 0) parts.push(decisionsText(report, print));
  return parts.join("\n\n");
}

function factsOf(
  report: RunReport,
  { live, waitsFor, command }: NextAction,
  most: number | undefined,
): Parameters<Printer["facts"]>[0] {
  const { status, totals, repeated, error, confidence, startedAt, completedSteps } = report;
  const moment = (time: string): string => `${seconds(time)}, ${ago(time, Date.now())}`;
  return [
    ["run", report.runId],
    ["graph", report.graph],
    ["metadata", entriesOf(report.metadata)],
    ["status", statusText(status, live), lookOf(status)],
    ["started", optional(startedAt, moment)],
    ["updated", moment(report.updatedAt)],
    ["elapsed", optional(report.elapsedMs, duration)],
    ["worked", duration(totals.durationMs)],
    ["resumes", positive(report.resumes)],
    ["crashes", positive(report.crashes), "yellow"],
    ["steps", stepsText(completedSteps, most)],
    ["phase", report.phase],
    ["last", report.lastStep],
    ["next", report.nextStep],
    ["usage", usageText(totals.usage)],
    ["repeated", repeated.visits === 0 ? "" : `${count(repeated.visits, "visit")} lost and redone`],
    ["confidence", optional(confidence, String)],
    ["error", optional(error, (it) => `${it.name} in ${it.node}: ${it.message}`), "red"],
    ...waitsFor.map((text) => ["waits for", text, "yellow"] as const),
    [live === true ? "follow" : "continue", command],
    ["settings", entriesOf(report.config)],
  ];
}

function entriesOf(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).map(([key, value]) => `${key}=${value}`);
}

function columnsOf(steps: readonly StepReport[]): readonly Column<StepReport>[] {
  const all: readonly Column<StepReport>[] = [
    { head: "#", cell: ({ step }) => String(step), right: true },
    { head: "node", cell: ({ node }) => node, least: 10 },
    { head: "phase", cell: ({ phase }) => phase, least: 6, leave: 2 },
    { head: "completed", cell: ({ completedAt }) => seconds(completedAt), leave: 1 },
    { head: "worked", cell: ({ durationMs }) => optional(durationMs, duration), right: true },
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
  // Leave out columns that have no values.
  return all.filter((column, at) => at < 2 || steps.some((step) => column.cell(step) !== ""));
}

function optional<T>(value: T | undefined, text: (value: T) => string): string {
  return value === undefined ? "" : text(value);
}

function positive(number: number): string {
  return number === 0 ? "" : String(number);
}

function tokens(count: number): string {
  return count === 0 ? "" : grouped(count);
}

function decisionsText({ decisions }: RunReport, print: Printer): string {
  const lines = decisions.map(({ node, description, rationale, confidence }) => {
    const why = rationale === undefined ? "" : `: ${rationale}`;
    const sure = confidence === undefined ? "" : ` (${confidence})`;
    return `  ${print.paint("dim", plain(node))}  ${plain(`${description}${why}${sure}`)}`;
  });
  return [print.paint("bold", "decisions"), ...lines].join("\n");
}
