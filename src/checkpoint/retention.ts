import { now } from "../clock.js";
import { check, checkOptions, flag, integer, oneOf, text } from "../options.js";
import { statuses } from "../state/record.js";
import { checkRunId } from "../state/run-id.js";
import type { Retention, RunFilter, RunSummary } from "./store.js";

/** How many checkpoints of a run a store keeps unless told otherwise. */
export const DEFAULT_KEEP = 5;

/** Never fewer than two, so that there is one to fall back to. */
export const checkKeep = integer(2, true);

const DAY = 24 * 60 * 60 * 1000;

const isStatus = oneOf(...statuses);

const isMoment = check(
  "a moment as ISO 8601",
  (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
);

/** Refuses what is no filter. */
export function checkFilter(filter: RunFilter): void {
  checkOptions("filter", filter, {
    status: (name, value) => {
      for (const one of Array.isArray(value) ? value : [value]) isStatus(name, one);
    },
    graph: text,
    before: isMoment,
    cursor: (name, value) => {
      isMoment(`${name}.timestamp`, (value as RunSummary | null)?.timestamp);
      const { runId } = value as RunSummary;
      text(`${name}.runId`, runId);
      // No run has another, and not every store could even look for it.
      checkRunId(runId);
    },
    limit: integer(0),
  });
}

/** The runs that a filter lets through, most recent first. */
export function filterRuns(runs: readonly RunSummary[], filter: RunFilter = {}): RunSummary[] {
  checkFilter(filter);
  const { before, cursor } = filter;
  const end = before === undefined ? undefined : new Date(before).toISOString();
  const wanted = filter.status === undefined ? undefined : new Set([filter.status].flat());
  return runs
    .filter((run) => wanted?.has(run.status) ?? true)
    .filter((run) => filter.graph === undefined || run.graph === filter.graph)
    .filter((run) => end === undefined || run.timestamp < end)
    .filter((run) => cursor === undefined || mostRecentFirst(run, cursor) > 0)
    .sort(mostRecentFirst)
    .slice(0, filter.limit);
}

/** Refuses what is no retention rule. */
export function checkRetention(retention: Retention): void {
  checkOptions("retention", retention, {
    maxAgeDays: check(
      "a number of days from 0 up",
      (days) => typeof days === "number" && days >= 0,
    ),
    maxRuns: integer(0),
    dryRun: flag,
  });
}

/** The finished runs that a retention rule removes. */
export function prunable(runs: readonly RunSummary[], retention: Retention): RunSummary[] {
  checkRetention(retention);
  const { maxAgeDays = Number.POSITIVE_INFINITY, maxRuns = Number.POSITIVE_INFINITY } = retention;
  const oldest = now() - maxAgeDays * DAY;
  return runs
    .filter((run) => run.status === "completed" || run.status === "failed")
    .sort(mostRecentFirst)
    .filter((run, index) => index >= maxRuns || Date.parse(run.timestamp) < oldest);
}

type Listed = Pick<RunSummary, "timestamp" | "runId">;

function mostRecentFirst(a: Listed, b: Listed): number {
  return compare(b.timestamp, a.timestamp) || compare(b.runId, a.runId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
