import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { RunHistory, RunStep, RunView } from "../../../api.js";
import { useNow } from "../../client/hooks.js";
import { clock, count, duration, money } from "../../format.js";
import { Section } from "../../parts/section.js";
import { statusWord } from "../../parts/status.js";
import { type Bar, type Gap, type Row, type Span, timelineOf } from "./model.js";
import { type Scale, scaleOf } from "./scale.js";

/** The maximum number of bars in a row, and of items in a lane; the newest are drawn. */
const MAX_BARS = 1000;
/** The height of the line with the times, in pixels. */
const HEAD = 24;

/** The timeline of a run. */
export function TimelinePanel({
  view,
  history,
  selected,
  onSelect,
}: {
  readonly view: RunView;
  readonly history: RunHistory | undefined;
  /** The selected step and node. */
  readonly selected: { readonly step: number | undefined; readonly node: string };
  readonly onSelect: (bar: { readonly node: string; readonly step: RunStep | undefined }) => void;
}): JSX.Element {
  const isLive = view.run.status === "in_progress" && view.run.live !== false;
  const now = useNow(isLive ? 1000 : 60_000);
  const timeline = useMemo(() => timelineOf(view, history, now), [view, history, now]);
  const scale = useMemo(() => scaleOf(timeline, timeline.gaps), [timeline]);
  const [pointed, setPointed] = useState<string>();
  const { rows, gaps, earlier } = timeline;
  const began = Math.min(timeline.from, Date.parse(view.run.startedAt));
  const worked = `${duration(view.workedMs)} of work in ${duration(timeline.to - began)}`;
  const chart = useRef<HTMLDivElement>(null);
  const shown = selected.node || (rows.at(-1)?.node ?? "");
  // What is selected elsewhere is scrolled to, or else what the run did last.
  useLayoutEffect(() => showRow(chart.current, shown), [shown]);
  return (
    <Section
      title="Timeline"
      kind="timeline"
      note={
        pointed ?? (earlier > 0 ? `${worked}, without the first ${count(earlier)} steps` : worked)
      }
    >
      {rows.length === 0 ? (
        <p class="muted nothing">No node has begun yet.</p>
      ) : (
        <div class="chart" ref={chart}>
          <div class="chart-body">
            <div class="ticks" aria-hidden="true">
              {scale.ticks.map(({ at, ms }) => (
                <span key={ms} style={{ left: `${at * 100}%` }}>
                  <span>{ms === 0 ? "0" : duration(ms)}</span>
                </span>
              ))}
            </div>
            <div class="gaps" aria-hidden="true">
              {gaps.map((gap) => (
                <GapBand key={gap.from} gap={gap} scale={scale} />
              ))}
            </div>
            <ul class="rows">
              {rows.map((row) => (
                <RowView
                  key={row.node}
                  row={row}
                  gaps={gaps}
                  scale={scale}
                  selected={selected}
                  onSelect={onSelect}
                  onPoint={setPointed}
                />
              ))}
            </ul>
            {gaps.length > 0 && (
              <p class="unseen">
                {gaps
                  .map(({ kind, from, to }) => `${wordOf(kind)} for ${duration(to - from)}`)
                  .join(", ")}
              </p>
            )}
          </div>
        </div>
      )}
    </Section>
  );
}

/** Scrolls a chart, and nothing else, to the row of a node. */
function showRow(chart: HTMLElement | null, node: string): void {
  const row = [...(chart?.querySelectorAll("li") ?? [])].find(
    (one) => one.getAttribute("aria-label") === node,
  );
  if (chart === null || row === undefined) return;
  const [panel, at] = [chart.getBoundingClientRect(), row.getBoundingClientRect()];
  const isSeen = at.top >= panel.top + HEAD && at.bottom <= panel.bottom;
  if (!isSeen) chart.scrollTop += (at.top + at.bottom - panel.top - panel.bottom) / 2;
}

function wordOf(kind: Gap["kind"]): string {
  return kind === "pause" ? "paused" : "down";
}

function GapBand({ gap, scale }: { readonly gap: Gap; readonly scale: Scale }): JSX.Element {
  const left = scale.at(gap.from);
  const width = scale.at(gap.to) - left;
  return (
    <span
      class={`gap ${gap.kind}`}
      style={{ left: `${left * 100}%`, width: `${width * 100}%` }}
      title={`${wordOf(gap.kind)} for ${duration(gap.to - gap.from)}`}
    >
      <span>
        {gap.kind === "pause" ? "paused" : "down"}
        <br />
        {duration(gap.to - gap.from)}
      </span>
    </span>
  );
}

function RowView({
  row,
  gaps,
  scale,
  selected,
  onSelect,
  onPoint,
}: {
  readonly row: Row;
  readonly gaps: readonly Gap[];
  readonly scale: Scale;
  readonly selected: { readonly step: number | undefined; readonly node: string };
  readonly onSelect: (bar: { readonly node: string; readonly step: RunStep | undefined }) => void;
  readonly onPoint: (text: string | undefined) => void;
}): JSX.Element {
  const { node, bars, lanes } = row;
  const place = ({ from, to }: Span): Record<string, string> => {
    const left = scale.at(from);
    return { left: `${left * 100}%`, width: `${(scale.at(to) - left) * 100}%` };
  };
  /** The gaps during a bar, positioned inside it. */
  const idle = (bar: Bar): Record<string, string>[] => {
    const left = scale.at(bar.from);
    const width = scale.at(bar.to) - left;
    return gaps
      .filter(({ from, to }) => from < bar.to && to > bar.from)
      .map(({ from, to }) => {
        const start = (scale.at(Math.max(from, bar.from)) - left) / width;
        const end = (scale.at(Math.min(to, bar.to)) - left) / width;
        return { left: `${start * 100}%`, width: `${(end - start) * 100}%` };
      });
  };
  return (
    <li class="row" aria-label={node}>
      <button
        type="button"
        class="row-name plain cut"
        aria-pressed={selected.node === node}
        title={node}
        onClick={() => onSelect({ node, step: bars.at(-1)?.step })}
      >
        {node}
      </button>
      <div class="track">
        {bars.slice(-MAX_BARS).map((bar) => (
          <button
            key={bar.from}
            type="button"
            class={`bar ${bar.mark}`}
            style={place(bar)}
            aria-pressed={
              selected.node === node && (bar.step?.step ?? selected.step) === selected.step
            }
            aria-label={describe(bar)}
            onClick={() => onSelect({ node, step: bar.step })}
            onPointerEnter={() => onPoint(describe(bar))}
            onPointerLeave={() => onPoint(undefined)}
            onFocus={() => onPoint(describe(bar))}
            onBlur={() => onPoint(undefined)}
          >
            {idle(bar).map((style) => (
              <span key={style.left} class="idle" style={style} />
            ))}
            {bar.attempts > 1 && <span class="attempt">{bar.attempt}</span>}
          </button>
        ))}
        {lanes.length > 0 && (
          <div class="lanes">
            {lanes.map((lane, index) => (
              <div key={index} class="lane">
                {lane.slice(-MAX_BARS).map((item) => (
                  <span
                    key={`${item.name} ${item.from}`}
                    class={`item ${item.mark}`}
                    style={place(item)}
                    role="img"
                    aria-label={describeItem(item)}
                    title={describeItem(item)}
                    onPointerEnter={() => onPoint(describeItem(item))}
                    onPointerLeave={() => onPoint(undefined)}
                  />
                ))}
              </div>
            ))}
          </div>
        )}
      </div>
    </li>
  );
}

function describe({ name, mark, attempt, attempts, step, from, to }: Bar): string {
  const usage = step?.usage;
  const tokens = usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
  return [
    step === undefined ? name : `${name}, step ${step.step}`,
    mark === "completed" ? undefined : statusWord(mark),
    duration(attempts > 1 ? to - from : (step?.durationMs ?? to - from)),
    `at ${clock(new Date(from).toISOString())}`,
    attempts > 1 ? `attempt ${attempt} of ${attempts}` : undefined,
    step !== undefined && step.restarts > 0
      ? `restarted ${step.restarts} ${step.restarts === 1 ? "time" : "times"}`
      : undefined,
    tokens > 0 ? `${count(tokens)} tokens` : undefined,
    usage !== undefined && usage.costUsd > 0 ? money(usage.costUsd) : undefined,
  ]
    .filter((part) => part !== undefined)
    .join(" · ");
}

function describeItem({ name, mark, from, to }: Bar): string {
  const outcome = mark === "next" ? "stopped" : statusWord(mark);
  return `${name} · ${outcome} · ${duration(to - from)}`;
}
