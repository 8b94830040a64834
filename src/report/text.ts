import { inline } from "../observers/markdown-text.js";
import type { UsageTotals } from "../state/ledger.js";
import type { RunReport, StepReport } from "./record.js";

/**
 * A report as a table for a terminal.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph } from "waymark";
 * import { report, toTable } from "waymark/report";
 *
 * const store = new MemoryStore();
 * const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1, preserve: true } })
 *   .addNode("one", () => ({ n: 1 }))
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 }, { runId: "monday" }));
 *
 * const text = toTable(await report("monday", { store }));
 * console.log(text.includes("monday")); // true
 * ```
 */
export function toTable(report: RunReport): string {
  const width = Math.max(...factsOf(report).map(([name]) => name.length));
  const facts = factsOf(report).map(([name, value]) => `${name.padEnd(width)}  ${value}`);
  return [...facts, "", ...aligned([head, ...report.steps.map(cellsOf)])].map(printable).join("\n");
}

/**
 * A report as Markdown. Names and messages in it can't break the document.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph } from "waymark";
 * import { report, toMarkdown } from "waymark/report";
 *
 * const store = new MemoryStore();
 * const graph = new StateGraph<{ n: number }>({ checkpoint: { store, interval: 1, preserve: true } })
 *   .addNode("one", () => ({ n: 1 }))
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 }, { runId: "monday" }));
 *
 * const text = toMarkdown(await report("monday", { store }));
 * console.log(text.startsWith("#")); // true
 * ```
 */
export function toMarkdown(report: RunReport): string {
  const facts = factsOf(report).map(([name, value]) => `- ${inline(name)}: ${inline(value)}`);
  const decisions = report.decisions.map(
    ({ description, rationale }) =>
      `- ${inline(description)}${rationale === undefined ? "" : `: ${inline(rationale)}`}`,
  );
  return [
    `# Run ${inline(report.runId)}`,
    facts.join("\n"),
    "## Steps",
    [head, head.map(() => "---"), ...report.steps.map((step) => cellsOf(step).map(inline))]
      .map((cells) => `| ${cells.join(" | ")} |`)
      .join("\n"),
    ...(decisions.length === 0 ? [] : ["## Decisions", decisions.join("\n")]),
  ]
    .join("\n\n")
    .concat("\n");
}

const head = [
  "#",
  "node",
  "completed",
  "worked",
  "attempts",
  "tokens in",
  "out",
  "cost",
  "outputs",
];

function cellsOf(step: StepReport): string[] {
  const { usage } = step;
  return [
    `${step.step}${step.saved ? "" : "*"}`,
    step.node,
    step.completedAt,
    step.durationMs === undefined ? "" : duration(step.durationMs),
    String(step.attempts),
    usage === undefined ? "" : String(usage.inputTokens),
    usage === undefined ? "" : String(usage.outputTokens),
    usage === undefined ? "" : dollars(usage),
    Object.keys(step.outputs).join(", "),
  ];
}

function factsOf(report: RunReport): [name: string, value: string][] {
  const { totals, repeated, error } = report;
  const facts: [string, string | undefined][] = [
    ["run", report.runId],
    ["graph", report.graph],
    ["status", report.status],
    ["started", report.startedAt],
    ["updated", report.updatedAt],
    ["elapsed", report.elapsedMs === undefined ? undefined : duration(report.elapsedMs)],
    ["worked", duration(totals.durationMs)],
    ["resumes", String(report.resumes)],
    ["crashes", report.crashes === 0 ? undefined : String(report.crashes)],
    ["steps", String(report.completedSteps)],
    ["last", report.lastStep],
    ["next", report.nextStep],
    ["usage", usageText(totals.usage)],
    [
      "repeated",
      repeated.visits === 0 ? undefined : `${repeated.visits} visits, ${usageText(repeated.usage)}`,
    ],
    ["error", error === undefined ? undefined : `${error.name} in ${error.node}: ${error.message}`],
    ["*", report.steps.some((step) => !step.saved) ? "not saved, runs again on resume" : undefined],
  ];
  return facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
}

function usageText(usage: UsageTotals): string {
  const { inputTokens, outputTokens, memoryPeakMb, counters, peaks } = usage;
  const rest = Object.entries(counters).map(([name, value]) => `${value} ${name}`);
  const highest = Object.entries({ ...(memoryPeakMb > 0 && { memoryPeakMb }), ...peaks });
  rest.push(...highest.map(([name, value]) => `${name} ${value}`));
  const tokens = `${inputTokens + outputTokens} tokens (${inputTokens} in, ${outputTokens} out)`;
  return [tokens, dollars(usage), ...rest].join(", ");
}

function dollars({ costUsd }: UsageTotals): string {
  return `$${costUsd < 0.01 && costUsd > 0 ? costUsd : costUsd.toFixed(2)}`;
}

function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  return minutes < 60
    ? `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Aligns the columns; numbers to the right. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, at) => Math.max(...rows.map((row) => [...(row[at] ?? "")].length)));
  return rows.map((row) =>
    row
      .map((cell, at) => {
        const space = " ".repeat((widths[at] ?? 0) - [...cell].length);
        return numeric.has(at) ? space + cell : cell + space;
      })
      .join("  ")
      .trimEnd(),
  );
}

const numeric: ReadonlySet<number> = new Set([0, 3, 4, 5, 6, 7]);

/** Names and messages may contain anything, including sequences that move the cursor. */
function printable(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is taken out
  return line.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, " ");
}
