import type { RunHistory, RunStep, RunView } from "../../../api.js";
import { markOfNode } from "../graph/model.js";

/** A stretch of time, in milliseconds since 1970. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A stretch in which nobody worked on the run. */
export interface Gap extends Span {
  readonly kind: "pause" | "downtime";
}

/** A visit of a node, or a part of one. */
export interface Bar extends Span {
  readonly name: string;
  readonly mark: "completed" | "failed" | "in_progress" | "paused" | "next";
  readonly attempts: number;
  /** The step; `undefined` for a node that has not completed. */
  readonly step: RunStep | undefined;
}

/** All visits of a node. */
export interface Row {
  readonly node: string;
  readonly bars: readonly Bar[];
  /** Items, tasks and calls, in as few lanes as keep them apart. */
  readonly lanes: readonly (readonly Bar[])[];
}

/** A run in time. */
export interface Timeline extends Span {
  readonly rows: readonly Row[];
  readonly gaps: readonly Gap[];
}

const MAX_LANES = 6;
/** A stretch without work that is shorter than this is no gap. */
const SHORTEST_GAP_MS = 500;

/** What a run did when. `now` is where a run that is at work has got to. */
export function timelineOf(view: RunView, history: RunHistory | undefined, now: number): Timeline {
  const { run, steps, unfinished } = view;
  const isLive = run.status === "in_progress" && run.live !== false;
  const rows = new Map<string, { bars: Bar[]; items: Bar[] }>();
  const rowOf = (node: string): { bars: Bar[]; items: Bar[] } => {
    const row = rows.get(node) ?? { bars: [], items: [] };
    rows.set(node, row);
    return row;
  };
  const itemsOf = (items: RunStep["items"], step: RunStep | undefined): Bar[] =>
    items.map(({ name, startedAt, durationMs, outcome }) => {
      const from = Date.parse(startedAt);
      const mark = outcome === "stopped" ? "next" : outcome;
      return { name, from, to: from + durationMs, mark, attempts: 1, step };
    });
  for (const step of steps) {
    const to = Date.parse(step.completedAt);
    const from = step.startedAt === undefined ? to : Date.parse(step.startedAt);
    const { node: name, attempts } = step;
    rowOf(name).bars.push({ name, from, to, mark: "completed", attempts, step });
    rowOf(name).items.push(...itemsOf(step.items, step));
  }
  if (unfinished !== null) {
    const { node: name, attempts } = unfinished;
    const mark = markOfNode(name, view);
    const from = Date.parse(unfinished.startedAt);
    const end = isLive ? now : from + unfinished.durationMs;
    rowOf(name).bars.push({
      name,
      from,
      to: Math.max(from, end),
      mark: mark === "failed" || mark === "in_progress" || mark === "paused" ? mark : "next",
      attempts: view.run.status === "failed" ? attempts : attempts + 1,
      step: undefined,
    });
    rowOf(name).items.push(...itemsOf(unfinished.items, undefined));
  }
  const bars = [...rows.values()].flatMap((row) => row.bars);
  // A fork has steps from before it was made.
  const from = Math.min(Date.parse(run.startedAt), ...bars.map((bar) => bar.from));
  const isOver = run.status === "completed" || run.status === "failed";
  const ends = [Date.parse(view.updatedAt), ...bars.map((bar) => bar.to), ...(isOver ? [] : [now])];
  const to = Math.max(from + 1, ...ends);
  return {
    from,
    to,
    rows: [...rows].map(([node, row]) => ({ node, bars: row.bars, lanes: lanesOf(row.items) })),
    gaps: gapsOf({ from, to }, bars, history, run.status),
  };
}

/** Bars in lanes in which none covers another. */
function lanesOf(items: readonly Bar[]): Bar[][] {
  const lanes: Bar[][] = [];
  for (const item of [...items].sort((a, b) => a.from - b.from)) {
    const free = lanes.find((lane) => (lane.at(-1)?.to ?? 0) <= item.from);
    if (free !== undefined) free.push(item);
    else if (lanes.length < MAX_LANES) lanes.push([item]);
  }
  return lanes;
}

/**
 * When nobody worked: between visits, and inside one that took longer than it worked. What the last checkpoint before it
 * says decides what kind it is.
 */
function gapsOf(
  whole: Span,
  bars: readonly Bar[],
  history: RunHistory | undefined,
  status: string,
): Gap[] {
  const saves = (history?.checkpoints ?? [])
    .map(({ savedAt, status: was }) => ({ at: Date.parse(savedAt), was }))
    .sort((a, b) => a.at - b.at);
  const kindAt = (time: number): Gap["kind"] => {
    const before = saves.findLast(({ at }) => at <= time + SHORTEST_GAP_MS);
    return before?.was === "paused" ? "pause" : "downtime";
  };
  const idle: Gap[] = [];
  const add = (from: number, to: number): void => {
    if (to - from >= SHORTEST_GAP_MS) idle.push({ from, to, kind: kindAt(from) });
  };
  const sorted = [...bars].sort((a, b) => a.from - b.from);
  let reached = whole.from;
  for (const bar of sorted) {
    add(reached, bar.from);
    for (const { from, to } of idleInside(
      bar,
      saves.map(({ at }) => at),
    ))
      add(from, to);
    reached = Math.max(reached, bar.to);
  }
  if (status !== "completed" && status !== "failed") add(reached, whole.to);
  return idle;
}

/** The longest stretches between the saves inside a visit, as many as make up for what it did not work. */
function idleInside(bar: Bar, saves: readonly number[]): Span[] {
  const worked = bar.step?.durationMs;
  if (worked === undefined) return [];
  let missing = bar.to - bar.from - worked;
  const inside = [...saves.filter((at) => at > bar.from && at < bar.to), bar.to];
  const stretches = inside
    .slice(1)
    .map((to, index) => ({ from: inside[index] ?? bar.from, to }))
    .sort((a, b) => b.to - b.from - (a.to - a.from));
  const idle: Span[] = [];
  for (const { from, to } of stretches) {
    if (missing < SHORTEST_GAP_MS) break;
    const length = Math.min(missing, to - from);
    idle.push({ from, to: from + length });
    missing -= length;
  }
  return idle;
}
