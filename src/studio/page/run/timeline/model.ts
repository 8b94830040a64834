import type { RunHistory, RunStep, RunView } from "../../../api.js";
import { markOfNode } from "../graph/model.js";

/** A period of time, in milliseconds since 1970. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** A period in which no process worked on the run. */
export interface Gap extends Span {
  readonly kind: "pause" | "downtime";
}

/** An attempt of a node, or an item of a visit. */
export interface Bar extends Span {
  readonly name: string;
  readonly mark: "completed" | "failed" | "in_progress" | "paused" | "next";
  /** The number of the attempt in its visit, starting at 1. */
  readonly attempt: number;
  /** How many attempts the visit has had. */
  readonly attempts: number;
  /** The step; `undefined` for a node that has not completed. */
  readonly step: RunStep | undefined;
}

/** All visits of a node. */
export interface Row {
  readonly node: string;
  readonly bars: readonly Bar[];
  /** Items, tasks and calls, in as few lanes as possible without overlap. */
  readonly lanes: readonly (readonly Bar[])[];
}

/** A visit as a whole. */
interface Visit extends Span {
  /** How long it worked, in milliseconds; `undefined` if all the time. */
  readonly worked: number | undefined;
}

/** The timeline of a run. */
export interface Timeline extends Span {
  readonly rows: readonly Row[];
  readonly gaps: readonly Gap[];
  /** How many steps came before the first that is known. */
  readonly earlier: number;
}

const MAX_LANES = 6;
/** The minimum length of a gap. */
const SHORTEST_GAP_MS = 500;

/** Computes the timeline of a run. A live run extends to `now`. */
export function timelineOf(view: RunView, history: RunHistory | undefined, now: number): Timeline {
  const { run, steps, unfinished } = view;
  const isLive = run.status === "in_progress" && run.live !== false;
  const rows = new Map<string, { bars: Bar[]; items: Bar[] }>();
  const rowOf = (node: string): { bars: Bar[]; items: Bar[] } => {
    const row = rows.get(node) ?? { bars: [], items: [] };
    rows.set(node, row);
    return row;
  };
  const visits: Visit[] = [];
  const itemsOf = (items: RunStep["items"], step: RunStep | undefined): Bar[] =>
    items.map(({ name, startedAt, durationMs, outcome }) => {
      const from = Date.parse(startedAt);
      const mark = outcome === "stopped" ? "next" : outcome;
      return { name, from, to: from + durationMs, mark, attempt: 1, attempts: 1, step };
    });
  for (const step of steps) {
    const to = Date.parse(step.completedAt);
    const { node: name, attempts, failedAttempts, lastAttemptAt } = step;
    const began = lastAttemptAt ?? step.startedAt ?? step.completedAt;
    const failed = failedBars(name, failedAttempts, attempts - 1, attempts, step);
    // An error handler runs after the attempt that failed.
    const from = Math.min(to, Math.max(Date.parse(began), failed.at(-1)?.to ?? 0));
    const visited = Math.min(to, Date.parse(step.startedAt ?? step.completedAt));
    visits.push({ from: visited, to, worked: step.durationMs });
    const last: Bar = { name, from, to, mark: "completed", attempt: attempts, attempts, step };
    rowOf(name).bars.push(...failed, last);
    rowOf(name).items.push(...itemsOf(step.items, step));
  }
  if (unfinished !== null) {
    const { node: name, failedAttempts } = unfinished;
    const isFailed = run.status === "failed";
    const known = Math.max(unfinished.attempts, failedAttempts.length);
    const attempts = isFailed ? known : known + 1;
    const failed = failedBars(name, failedAttempts, known, attempts, undefined);
    rowOf(name).bars.push(...failed);
    const began = Date.parse(unfinished.startedAt);
    const from = Math.max(began, failed.at(-1)?.to ?? 0);
    const to = Math.max(from, isLive ? now : Date.parse(run.savedAt));
    visits.push({ from: began, to, worked: isLive ? undefined : unfinished.durationMs });
    const mark = barMark(name, view);
    if (!isFailed || failed.length === 0) {
      rowOf(name).bars.push({ name, from, to, mark, attempt: attempts, attempts, step: undefined });
    }
    rowOf(name).items.push(...itemsOf(unfinished.items, undefined));
  } else if (isLive && view.next.node !== null) {
    // A node that has saved nothing yet began at the last save.
    const name = view.next.node;
    const from = Date.parse(run.savedAt);
    const begun = { name, from, to: Math.max(from, now), mark: barMark(name, view) };
    visits.push({ ...begun, worked: undefined });
    rowOf(name).bars.push({ ...begun, attempt: 1, attempts: 1, step: undefined });
  }
  const bars = [...rows.values()].flatMap((row) => row.bars);
  const earlier = (steps[0]?.step ?? run.step + 1) - 1;
  // A fork has steps from before it was created. If the first steps are missing, the timeline begins after them.
  const first = Math.min(...bars.map((bar) => bar.from));
  const from = earlier > 0 && bars.length > 0 ? first : Math.min(Date.parse(run.startedAt), first);
  const isOver = run.status === "completed" || run.status === "failed";
  const ends = [Date.parse(view.updatedAt), ...bars.map((bar) => bar.to), ...(isOver ? [] : [now])];
  const to = Math.max(from + 1, ...ends);
  return {
    from,
    to,
    rows: [...rows].map(([node, row]) => ({ node, bars: row.bars, lanes: lanesOf(row.items) })),
    gaps: gapsOf({ from, to }, visits, history, run.status),
    earlier,
  };
}

/** The mark of a node that has not completed. */
function barMark(name: string, view: RunView): Bar["mark"] {
  const mark = markOfNode(name, view);
  return mark === "failed" || mark === "in_progress" || mark === "paused" ? mark : "next";
}

/** The bars of the newest failed attempts of a visit; `failed` is how many there were. */
function failedBars(
  name: string,
  records: RunStep["failedAttempts"],
  failed: number,
  attempts: number,
  step: RunStep | undefined,
): Bar[] {
  const before = Math.max(0, failed - records.length);
  return records.map(({ startedAt, durationMs }, index) => {
    const from = Date.parse(startedAt);
    const attempt = before + index + 1;
    return { name, from, to: from + durationMs, mark: "failed", attempt, attempts, step };
  });
}

/** Distributes bars over lanes in which they don't overlap. */
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
 * The gaps between visits, and inside visits that took longer than they worked. The status of the last checkpoint before a
 * gap decides its kind.
 */
function gapsOf(
  whole: Span,
  visits: readonly Visit[],
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
  const times = saves.map(({ at }) => at);
  let reached = whole.from;
  for (const visit of [...visits].sort((a, b) => a.from - b.from)) {
    add(reached, visit.from);
    for (const { from, to } of idleInside(visit, times)) add(from, to);
    reached = Math.max(reached, visit.to);
  }
  if (status !== "completed" && status !== "failed") add(reached, whole.to);
  return idle;
}

/** The longest periods between saves inside a visit, as many as add up to the time it did not work. */
function idleInside({ from: begun, to: end, worked }: Visit, saves: readonly number[]): Span[] {
  if (worked === undefined) return [];
  let missing = end - begun - worked;
  const inside = [...saves.filter((at) => at > begun && at < end), end];
  const stretches = inside
    .slice(1)
    .map((to, index) => ({ from: inside[index] ?? begun, to }))
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
