import type { RunSummary } from "../checkpoint/store.js";
import { monotonic } from "../clock.js";
import type { RunStatus } from "../state/record.js";
import type { State } from "../state/state.js";
import type { DayFigures, Figures, GraphFigures, NodeFigures, Percentiles } from "./api.js";
import type { Studio } from "./context.js";
import { newest } from "./inbox.js";

/** How many runs are counted. */
const COUNTED = 10_000;
/** How many runs of each graph are loaded, for times and costs. */
const SAMPLED = 500;
/** How long loading may take in total, in milliseconds. */
const BUDGET = 2000;
/** How many nodes are listed as the slowest and the most expensive. */
const TOP = 5;

interface Node {
  visits: number;
  failures: number;
  maxAttempts: number;
  costUsd: number;
  inputTokens: number;
  outputTokens: number;
  readonly durations: number[];
}

/** The figures of each graph, or of one. */
export async function figuresOf(studio: Studio, graph: string | null): Promise<Figures> {
  const filter = graph === null || graph === "" ? {} : { graph };
  const runs = await newest(studio, filter, COUNTED + 1);
  const byGraph = new Map<string, RunSummary[]>();
  for (const run of runs.slice(0, COUNTED)) {
    const known = byGraph.get(run.graph) ?? [];
    byGraph.set(run.graph, known);
    known.push(run);
  }
  const end = monotonic() + BUDGET;
  const graphs: GraphFigures[] = [];
  const names = [...byGraph.keys()].sort();
  for (const [index, name] of names.entries()) {
    // Each graph gets an equal share of the remaining time.
    const share = (end - monotonic()) / (names.length - index);
    graphs.push(await ofGraph(studio, name, byGraph.get(name) ?? [], monotonic() + share));
  }
  return { graphs, more: runs.length > COUNTED };
}

async function ofGraph(
  studio: Studio,
  graph: string,
  runs: readonly RunSummary[],
  end: number,
): Promise<GraphFigures> {
  const { store } = studio.settings;
  const days = daysOf(runs);
  const nodes = new Map<string, Node>();
  const elapsed: number[] = [];
  let costUsd = 0;
  let sampled = 0;
  for (const { runId, startedAt } of runs.slice(0, SAMPLED)) {
    if (monotonic() > end) break;
    // Skips a run that has been deleted or damaged in the meantime.
    const state = await store.load<object>(runId).catch(() => undefined);
    if (state === undefined) continue;
    sampled++;
    addRun(nodes, state);
    const cost = state.ledger.usage.costUsd;
    costUsd += cost;
    const day = days.get(dayOf(startedAt));
    if (day !== undefined) day.costUsd += cost;
    if (state.status === "completed") {
      elapsed.push(Date.parse(state.savedAt) - Date.parse(state.startedAt));
    }
  }
  const statuses: Partial<Record<RunStatus, number>> = {};
  for (const { status } of runs) statuses[status] = (statuses[status] ?? 0) + 1;
  const { completed = 0, failed = 0 } = statuses;
  const figures = [...nodes].map(([node, facts]) => nodeFigures(node, facts));
  return {
    graph,
    runs: runs.length,
    statuses,
    failureRate: completed + failed === 0 ? null : failed / (completed + failed),
    days: [...days.values()].sort((a, b) => (a.day < b.day ? -1 : 1)),
    sampled,
    costUsd,
    elapsed: elapsed.length === 0 ? null : percentiles(elapsed),
    nodes: figures.sort((a, b) => (a.node < b.node ? -1 : 1)),
    slowest: top(figures, ({ p95Ms }) => p95Ms),
    dearest: top(figures, (node) => node.costUsd),
  };
}

type Day = { -readonly [K in keyof DayFigures]: DayFigures[K] };

function daysOf(runs: readonly RunSummary[]): Map<string, Day> {
  const days = new Map<string, Day>();
  for (const { startedAt, status } of runs) {
    const day = dayOf(startedAt);
    const figures = days.get(day) ?? { day, runs: 0, completed: 0, failed: 0, costUsd: 0 };
    days.set(day, figures);
    figures.runs++;
    if (status === "completed" || status === "failed") figures[status]++;
  }
  return days;
}

function dayOf(moment: string): string {
  return moment.slice(0, 10);
}

function addRun(nodes: Map<string, Node>, state: State<object>): void {
  for (const [name, { visits, usage }] of Object.entries(state.totals)) {
    const node = nodeOf(nodes, name);
    node.visits += visits;
    node.costUsd += usage?.costUsd ?? 0;
    node.inputTokens += usage?.inputTokens ?? 0;
    node.outputTokens += usage?.outputTokens ?? 0;
  }
  for (const { node: name, durationMs, attempts } of state.steps) {
    const node = nodeOf(nodes, name);
    node.durations.push(durationMs);
    node.maxAttempts = Math.max(node.maxAttempts, attempts);
  }
  if (state.error !== undefined) nodeOf(nodes, state.error.node).failures++;
}

function nodeOf(nodes: Map<string, Node>, name: string): Node {
  const known = nodes.get(name);
  if (known !== undefined) return known;
  const counts = { visits: 0, failures: 0, maxAttempts: 0, costUsd: 0 };
  const node = { ...counts, inputTokens: 0, outputTokens: 0, durations: [] };
  nodes.set(name, node);
  return node;
}

function nodeFigures(node: string, { durations, ...facts }: Node): NodeFigures {
  return { node, ...facts, ...percentiles(durations) };
}

function percentiles(durations: readonly number[]): Percentiles {
  const sorted = durations.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.ceil(sorted.length * part) - 1] ?? 0;
  return { p50Ms: at(0.5), p95Ms: at(0.95) };
}

function top(nodes: readonly NodeFigures[], of: (node: NodeFigures) => number): string[] {
  const counted = nodes.filter((node) => of(node) > 0).sort((a, b) => of(b) - of(a));
  return counted.slice(0, TOP).map(({ node }) => node);
}
