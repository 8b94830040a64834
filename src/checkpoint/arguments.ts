import { now } from "../clock.js";
import { ConfigError, show } from "../errors.js";
import {
  type Check,
  callable,
  check,
  checkOptions,
  checkRunId,
  flag,
  integer,
  oneOf,
  string,
  text,
} from "../options.js";
import { checkMetadata } from "../state/metadata.js";
import { ended, statuses, unended } from "../state/record.js";
import { checkState, State } from "../state/state.js";
import type {
  CheckpointAt,
  ExportedCheckpoint,
  Retention,
  RunFilter,
  RunSummary,
  SaveOptions,
  StoreContext,
} from "./store.js";

/*
 * The arguments of a store's methods: what they may be, and which checkpoints and runs they select.
 */

/** Throws if the value to save is not a State, or an option is invalid. */
export function checkSave(state: unknown, options: SaveOptions): void {
  checkState(state);
  checkContext("options", options);
  if (options.keep !== undefined) checkKeep("keep", options.keep);
  if (options.keepPerPhase !== undefined) checkKeepPerPhase("keepPerPhase", options.keepPerPhase);
}

const step = integer(0);

/** Throws if a step or a checkpoint id is invalid. */
export const atChecks: Readonly<Record<keyof CheckpointAt, Check>> = {
  step: (_, value) => step("step", value),
  checkpointId: (_, value) => string("checkpointId", value),
};

/** Throws if the checkpoint to load is not named by a step or a checkpoint id. */
export function checkAt(at: CheckpointAt, context: StoreContext = {}): void {
  checkOptions("at", at, atChecks);
  checkContext("context", context);
}

function checkContext(name: string, context: StoreContext): void {
  if (typeof context !== "object" || context === null)
    throw new ConfigError(name, `must be an object of options; got ${show(context)}`);
  if (context.emit !== undefined) callable(`${name}.emit`, context.emit);
  if (context.inspect !== undefined) flag(`${name}.inspect`, context.inspect);
}

/** The checkpoints to import. Throws as soon as it reaches one that is invalid. */
export async function* checkImport(
  checkpoints: AsyncIterable<ExportedCheckpoint> | Iterable<ExportedCheckpoint>,
): AsyncGenerator<ExportedCheckpoint> {
  const given = Object(checkpoints);
  if (!(Symbol.asyncIterator in given) && !(Symbol.iterator in given)) {
    const problem = `must be an iterable of checkpoints, as export() gives; got ${show(checkpoints)}`;
    throw new ConfigError("checkpoints", problem);
  }
  for await (const checkpoint of checkpoints) {
    const { state, parentId } = Object(checkpoint) as Partial<ExportedCheckpoint>;
    if (!(state instanceof State) || typeof parentId !== "string") {
      const problem = `must each have a state and a parentId, as export() gives; got ${show(checkpoint)}`;
      throw new ConfigError("checkpoints", problem);
    }
    yield { state, parentId };
  }
}

/** The number of completed steps of a run that a store keeps by default. */
export const DEFAULT_KEEP = 5;

/** At least two, so that there is one to fall back to. */
export const checkKeep = integer(2, true);

/** The number of steps of each phase to keep. */
export const checkKeepPerPhase = integer(1);

const DAY = 24 * 60 * 60 * 1000;

/** The facts that decide whether a checkpoint is kept. */
export interface Keepable {
  /** The number of nodes that had completed. */
  readonly step: number;
  /** Whether it is a progress save. */
  readonly unfinished: boolean;
  /** The phase of the last completed node. */
  readonly phase: string;
}

/** How much of a run's history to keep. */
export interface KeepRule {
  /** The number of completed steps. */
  readonly keep: number;
  /** The number of steps of each phase, in addition. */
  readonly keepPerPhase?: number | undefined;
}

/**
 * The checkpoints of a run to keep: the newest of each kept step, and the newest progress save of an unfinished node,
 * which is the newest checkpoint of all. Progress saves never push a step out, however many there are.
 *
 * @param entries - all checkpoints of the run, newest first.
 */
export function kept<T extends Keepable>(entries: readonly T[], rule: KeepRule): T[] {
  const { keep, keepPerPhase = 0 } = rule;
  if (keep === Number.POSITIVE_INFINITY) return [...entries];
  const steps = new Set<number>();
  const phases = new Map<string, number>();
  const stays: T[] = [];
  for (const [index, entry] of entries.entries()) {
    const { step, unfinished, phase } = entry;
    if (unfinished) {
      if (index === 0) stays.push(entry);
      continue;
    }
    if (steps.has(step)) continue;
    if (steps.size >= keep && keepPerPhase === 0) break;
    const inPhase = phases.get(phase) ?? 0;
    if (steps.size < keep || (phase !== "" && inPhase < keepPerPhase)) stays.push(entry);
    steps.add(step);
    phases.set(phase, inPhase + 1);
  }
  // A run that is saved many times within one step still has one to fall back to.
  return stays.length === 1 ? entries.slice(0, 2) : stays;
}

const isStatus = oneOf(...statuses);

const isMoment = check(
  "a moment as ISO 8601",
  (value) => typeof value === "string" && !Number.isNaN(Date.parse(value)),
);

/** Throws if the filter is invalid. */
export function checkFilter(filter: RunFilter): void {
  checkOptions("filter", filter, {
    runId: (_, value) => {
      checkRunId(value);
    },
    status: (name, value) => {
      for (const one of Array.isArray(value) ? value : [value]) isStatus(name, one);
    },
    graph: text,
    before: isMoment,
    cursor: (name, value) => {
      isMoment(`${name}.savedAt`, (value as RunSummary | null)?.savedAt);
      const { runId } = value as RunSummary;
      text(`${name}.runId`, runId);
      // No run has such metadata, and not every store could search for it.
      checkRunId(runId);
    },
    metadata: checkMetadata,
    limit: integer(0),
  });
}

/**
 * The runs that match a filter, most recently saved first, for a backend that can't filter them itself. The filter must
 * be valid.
 *
 * @example
 * ```ts
 * import { MemoryStore, State } from "waymark";
 * import { filterRuns } from "waymark/stores";
 *
 * const store = new MemoryStore();
 * await State.create({ n: 1 }, { runId: "monday" }).checkpoint(store);
 * console.log(filterRuns(await store.runs(), { status: "pending", limit: 1 })[0]?.runId); // monday
 * ```
 */
export function filterRuns<T extends RunSummary>(runs: readonly T[], filter: RunFilter = {}): T[] {
  const { before, cursor } = filter;
  const metadata = Object.entries(filter.metadata ?? {});
  const end = before === undefined ? undefined : new Date(before).toISOString();
  const wanted = filter.status === undefined ? undefined : new Set([filter.status].flat());
  return runs
    .filter((run) => filter.runId === undefined || run.runId === filter.runId)
    .filter((run) => wanted?.has(run.status) ?? true)
    .filter((run) => filter.graph === undefined || run.graph === filter.graph)
    .filter((run) => end === undefined || run.savedAt < end)
    .filter((run) => metadata.every(([key, value]) => run.metadata[key] === value))
    .filter((run) => cursor === undefined || mostRecentFirst(run, cursor) > 0)
    .sort(mostRecentFirst)
    .slice(0, filter.limit);
}

/** Throws if the retention rule is invalid. */
export function checkRetention(retention: Retention): void {
  checkOptions("retention", retention, {
    maxAgeDays: check(
      "a number of days from 0 up",
      (days) => typeof days === "number" && days >= 0,
    ),
    maxRuns: integer(0),
    includeAbandoned: flag,
    dryRun: flag,
  });
}

/**
 * The runs that a retention rule removes, page by page from a listing, most recently saved first.
 *
 * @param list - returns a page of runs; see `CheckpointStore.runs`.
 */
export async function* prunable<T extends RunSummary>(
  retention: Retention,
  list: (filter: RunFilter) => Promise<T[]>,
): AsyncGenerator<T[]> {
  const { maxAgeDays = Number.POSITIVE_INFINITY, maxRuns = Number.POSITIVE_INFINITY } = retention;
  const since = now() - maxAgeDays * DAY;
  // The save time before which a run is too old; age does not matter without `maxAgeDays`.
  const oldest = Number.isFinite(since) ? new Date(Math.max(since, 0)).toISOString() : undefined;
  let seen = 0;
  for await (const page of pages(list, { status: ended })) {
    const doomed = page.filter(({ savedAt }, index) => {
      return seen + index >= maxRuns || (oldest !== undefined && savedAt < oldest);
    });
    seen += page.length;
    yield doomed;
  }
  if (retention.includeAbandoned !== true || oldest === undefined) return;
  yield* pages(list, { status: unended, before: oldest });
}

const PAGE = 200;

/** All runs that fit a filter, page by page. */
export async function* pages<T extends RunSummary>(
  list: (filter: RunFilter) => Promise<T[]>,
  filter: RunFilter,
): AsyncGenerator<T[]> {
  let cursor: T | undefined;
  do {
    const page = await list({ ...filter, limit: PAGE, cursor });
    yield page;
    cursor = page.length < PAGE ? undefined : page.at(-1);
  } while (cursor !== undefined);
}

type Listed = Pick<RunSummary, "savedAt" | "runId">;

function mostRecentFirst(a: Listed, b: Listed): number {
  return compare(b.savedAt, a.savedAt) || compare(b.runId, a.runId);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
