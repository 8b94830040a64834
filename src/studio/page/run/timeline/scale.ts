import type { Gap, Span } from "./model.js";

/** Maps a time to a position from 0 to 1. Long gaps are compressed, so that the work around them stays visible. */
export interface Scale {
  readonly at: (time: number) => number;
  readonly ticks: readonly { readonly at: number; readonly ms: number }[];
}

/** The maximum width of a gap, as a share of the width of all work. */
const GAP_SHARE = 0.3;

export function scaleOf(whole: Span, gaps: readonly Gap[]): Scale {
  const merged = joined(gaps);
  const idle = merged.reduce((sum, { from, to }) => sum + to - from, 0);
  const work = Math.max(1, whole.to - whole.from - idle);
  const most = work * GAP_SHARE;
  const pieces: { from: number; to: number; width: number }[] = [];
  let reached = whole.from;
  for (const { from, to } of merged) {
    if (from > reached) pieces.push({ from: reached, to: from, width: from - reached });
    pieces.push({ from, to, width: Math.min(most, to - from) });
    reached = to;
  }
  if (whole.to > reached) pieces.push({ from: reached, to: whole.to, width: whole.to - reached });
  const total = pieces.reduce((sum, { width }) => sum + width, 0) || 1;
  const at = (time: number): number => {
    let before = 0;
    for (const { from, to, width } of pieces) {
      if (time <= to)
        return (before + (Math.max(0, time - from) / (to - from || 1)) * width) / total;
      before += width;
    }
    return 1;
  };
  return { at, ticks: ticksOf(whole, pieces, at) };
}

function ticksOf(
  whole: Span,
  pieces: readonly { from: number; to: number; width: number }[],
  at: (time: number) => number,
): Scale["ticks"] {
  const isEven = pieces.every(({ from, to, width }) => width === to - from);
  const every = niceStep((whole.to - whole.from) / 5);
  const times = isEven
    ? Array.from({ length: 8 }, (_, index) => whole.from + index * every)
    : [whole.from, ...pieces.map(({ to }) => to)];
  const ticks: { at: number; ms: number }[] = [];
  for (const time of times) {
    const place = at(time);
    const isApart = place - (ticks.at(-1)?.at ?? -1) > 0.1;
    if (time <= whole.to && isApart && place < 0.9)
      ticks.push({ at: place, ms: time - whole.from });
  }
  return ticks;
}

const steps = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000,
  300_000, 600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000,
];

function niceStep(ms: number): number {
  return steps.find((step) => step >= ms) ?? Math.ceil(ms / 86_400_000) * 86_400_000;
}

/** Merges gaps that touch or overlap. */
function joined(gaps: readonly Gap[]): Span[] {
  const spans: { from: number; to: number }[] = [];
  for (const { from, to } of [...gaps].sort((a, b) => a.from - b.from)) {
    const last = spans.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else spans.push({ from, to });
  }
  return spans;
}
