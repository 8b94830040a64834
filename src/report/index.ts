/**
 * Reports what happened in a run, from its State and its log.
 *
 * @packageDocumentation
 */

import { atChecks } from "../checkpoint/arguments.js";
import { type CheckpointStore, isCheckpointStore, isNewest } from "../checkpoint/store.js";
import { msBetween } from "../clock.js";
import { CheckpointNotFoundError, ConfigError, isWaymarkError } from "../errors.js";
import { type LogLine, readEventLog } from "../observers/log/reader.js";
import { checkLogPlace, type LogPlace } from "../observers/run-files.js";
import { check, checkOptions, checkRunId } from "../options.js";
import { progressOf } from "../state/derive.js";
import { type Decision, Ledger } from "../state/ledger.js";
import { recordOf, type State } from "../state/state.js";
import type { RunReport, StepReport } from "./record.js";
import { Replay, type Visit } from "./replay.js";
import { stepsOf, visitsUpTo } from "./steps.js";

export type { LogPlace } from "../observers/run-files.js";
export type { ReportError, RunReport, StepReport } from "./record.js";
export { toMarkdown, toTable } from "./text.js";

/** Options of {@link report}: a store, a log, or preferably both. */
export interface ReportOptions {
  /** The store of the run: its newest checkpoint has the steps, the ledger and the totals. */
  readonly store?: CheckpointStore;
  /** The log of the run, as passed to `eventLog`: `{ root }` or `{ path }`. It has work that was lost, or is not saved yet. */
  readonly log?: LogPlace;
  /** Report the run as it was at the checkpoint with this id; it must be in the store. */
  readonly checkpointId?: string | undefined;
  /** Report the run as it was at the newest checkpoint of this step; it must be in the store. */
  readonly step?: number | undefined;
}

/**
 * Reports what happened in a run, across all processes that worked on it: its status, its steps with their duration
 * and usage, its totals, its error. All of that is in the newest checkpoint; a log adds the work that was lost in
 * crashes or is not saved yet. If the checkpoints are gone, the log alone is used.
 *
 * @throws ConfigError if there is neither a store nor a log.
 * @throws CheckpointNotFoundError if neither has the run, or the store has no such checkpoint.
 *
 * @example
 * ```ts
 * import { MemoryStore, State, StateGraph } from "waymark";
 * import { report, toTable } from "waymark/report";
 *
 * const store = new MemoryStore();
 * const graph = new StateGraph<{ words: number }>({
 *   name: "article",
 *   checkpoint: { store, interval: 1, preserve: true },
 * })
 *   .addNode("draft", (_state, context) => {
 *     context.ledger.usage({ inputTokens: 900, outputTokens: 100, costUsd: 0.05 });
 *     return { words: 120 };
 *   })
 *   .setEntryPoint("draft")
 *   .setExitPoint("draft");
 * await graph.execute(State.create({ words: 0 }, { runId: "monday" }));
 *
 * const { status, lastStep, totals } = await report("monday", { store });
 * console.log(status, lastStep, totals.usage.costUsd); // completed draft 0.05
 * console.log(toTable(await report("monday", { store })).split("\n")[0]); // run      monday
 * ```
 */
export async function report(runId: string, options: ReportOptions): Promise<RunReport> {
  checkRunId(runId);
  checkOptions("options", options, {
    store: check("a CheckpointStore", isCheckpointStore),
    ...atChecks,
    log: checkLogPlace,
  });
  const { store, log, checkpointId, step } = options;
  if (store === undefined && log === undefined) {
    throw new ConfigError("options", "must have a store, a log, or both");
  }
  // The log first: anything saved in the meantime is then in the State.
  const at = { step, checkpointId };
  if (!isNewest(at)) {
    if (store === undefined) throw new ConfigError("options.store", "must be set for a checkpoint");
    const state = await store.load(runId, at);
    return fromState(state, log && (await replayed(log, runId, state.checkpointId)));
  }
  const replay = log && (await replayed(log, runId));
  const state = await newestOf(store, runId);
  if (state !== undefined) return fromState(state, replay);
  if (replay === undefined) throw new CheckpointNotFoundError(runId);
  return fromLog(runId, replay);
}

/** @param until - the checkpoint to stop at; without it in the log, there is no replay. */
async function replayed(log: LogPlace, runId: string, until?: string): Promise<Replay | undefined> {
  const replay = new Replay();
  for await (const line of readEventLog(log, runId)) {
    replay.add(line);
    if (until !== undefined && replay.at(until) !== undefined) return replay;
  }
  return replay.updatedAt === "" || until !== undefined ? undefined : replay;
}

async function newestOf(
  store: CheckpointStore | undefined,
  runId: string,
): Promise<State<object> | undefined> {
  try {
    return await store?.load(runId);
  } catch (error) {
    if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return undefined;
    throw error;
  }
}

function fromState(state: State<object>, replay: Replay | undefined): RunReport {
  const { runId, status, step, ledger, startedAt, savedAt, totals } = state;
  const steps = stepsOf(visitsUpTo(replay?.last), {
    records: state.steps,
    outputs: ledger.outputs,
    isSaved: savedBy(state, replay),
  });
  const updatedAt = replay !== undefined && replay.updatedAt > savedAt ? replay.updatedAt : savedAt;
  const worked = Object.values(totals).reduce((sum, { durationMs }) => sum + durationMs, 0);
  return {
    runId,
    graph: state.graph?.name ?? replay?.graph ?? "",
    status,
    startedAt,
    updatedAt,
    elapsedMs: elapsed(startedAt, updatedAt),
    resumes: state.resumes,
    crashes: state.crashes,
    phase: state.phase,
    metadata: state.metadata,
    config: recordOf(state).identity.config,
    steps,
    completedSteps: step,
    lastStep: state.checkpointNode === "" ? undefined : state.checkpointNode,
    nextStep: nextOf(state, replay),
    totals: { usage: ledger.usage, durationMs: worked },
    nodes: ledger.nodes,
    repeated:
      replay === undefined ? { visits: state.crashes, usage: Ledger.empty.usage } : replay.repeated,
    decisions: ledger.decisions,
    agents: ledger.agents,
    confidence: ledger.confidence,
    error: state.error ?? replay?.error,
  };
}

/** Without checkpoints: those of a completed run are removed unless they are preserved. */
function fromLog(runId: string, replay: Replay): RunReport {
  const { graph, status, startedAt, updatedAt, resumes, last, next, error } = replay;
  const visits = visitsUpTo(last);
  const held = new Set(visitsUpTo(replay.saved));
  const isSaved = (visit: Visit): boolean => status === "completed" || held.has(visit);
  const steps = stepsOf(visits, { records: [], outputs: {}, isSaved });
  const decided = visits.flatMap((visit) => visit.decisions);
  const ledger = decided.reduce(withDecision, replay.ledger);
  const done = steps.at(-1);
  return {
    runId,
    graph,
    status,
    startedAt,
    updatedAt,
    elapsedMs: elapsed(startedAt, updatedAt),
    resumes,
    crashes: 0,
    phase: "",
    metadata: {},
    config: {},
    steps,
    completedSteps: done?.step ?? 0,
    lastStep: done?.node,
    nextStep: next,
    totals: { usage: ledger.usage, durationMs: durationOf(steps) },
    nodes: ledger.nodes,
    repeated: replay.repeated,
    decisions: ledger.decisions,
    agents: {},
    confidence: ledger.confidence,
    error,
  };
}

/** Decides which visits the State's checkpoint contains; later ones in the log are not saved, or not yet. */
function savedBy(state: State<object>, replay: Replay | undefined): (visit: Visit) => boolean {
  const at = replay?.at(state.checkpointId);
  if (at === undefined) return (visit) => visit.index < state.step;
  const held = new Set(visitsUpTo(at.last));
  return (visit) => held.has(visit);
}

function nextOf(state: State<object>, replay: Replay | undefined): string | undefined {
  if (state.status === "completed") return undefined;
  return state.error?.node ?? progressOf(state).unfinished?.node ?? replay?.next ?? state.nextNode;
}

function withDecision(ledger: Ledger, line: LogLine): Ledger {
  const { ts: timestamp, node, step, description, rationale, confidence, alternatives } = line;
  const decision = { timestamp, node, step, description, rationale, confidence, alternatives };
  try {
    return ledger.addDecision(decision as Decision);
  } catch {
    // Another program has written to the log.
    return ledger;
  }
}

function durationOf(steps: readonly StepReport[]): number {
  return steps.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0);
}

function elapsed(from: string | undefined, to: string): number | undefined {
  return from === undefined ? undefined : msBetween(from, to);
}
