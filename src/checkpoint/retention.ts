import { now } from "../clock.js";
import { check, checkOptions, flag, integer, oneOf, text } from "../options.js";
import { statuses } from "../state/record.js";
import type { Retention, RunFilter, RunSummary } from "./store.js";

/** How many checkpoints of a run a store keeps unless told otherwise. */
export const DEFAULT_KEEP = 5;

/** Never fewer than two, so that there is one to fall back to. */
export const checkKeep = integer(2, true);

const DAY = 24 * 60 * 60 * 1000;

const isStatus = oneOf(...statuses);

/** The runs that a filter lets through, most recent first. */
export function filterRuns(runs: readonly RunSummary[], filter: RunFilter = {}): RunSummary[] {
  checkOptions("filter", filter, {
    status: (name, value) => {
      for (const one of Array.isArray(value) ? value : [value]) isStatus(name, one);
    },
    graph: text,
    limit: integer(0),
  });
  const wanted = filter.status === undefined ? undefined : new Set([filter.status].flat());
  return runs
    .filter((run) => wanted?.has(run.status) ?? true)
    .filter((run) => filter.graph === undefined || run.graph === filter.graph)
    .sort(mostRecentFirst)
    .slice(0, filter.limit);
}

/** The finished runs that a retention rule removes. */
export function prunable(runs: readonly RunSummary[], retention: Retention): RunSummary[] {
  checkOptions("retention", retention, {
    maxAgeDays: check(
      "a number of days from 0 up",
      (days) => typeof days === "number" && days >= 0,
    ),
    maxRuns: integer(0),
    dryRun: flag,
  });
  const { maxAgeDays = Number.POSITIVE_INFINITY, maxRuns = Number.POSITIVE_INFINITY } = retention;
  const oldest = now() - maxAgeDays * DAY;
  return runs
    .filter((run) => run.status === "completed" || run.status === "failed")
    .sort(mostRecentFirst)
    .filter((run, index) => index >= maxRuns || Date.parse(run.timestamp) < oldest);
}

function mostRecentFirst(a: RunSummary, b: RunSummary): number {
  return a.timestamp < b.timestamp ? 1 : a.timestamp > b.timestamp ? -1 : 0;
}
