import { messageOf } from "../../errors.js";
import type { GraphNode } from "../../graph/node.js";
import { withProgress } from "../../state/derive.js";
import type { Answer, PauseRequest, Progress, Recovery } from "../../state/record.js";
import type { State } from "../../state/state.js";
import type { StepRecord } from "../../state/steps.js";
import type { Visit } from "../visit/visit.js";
import { cutMessage, errorName, type Failure, stackOf } from "./failure.js";

/** A record that nobody else has access to yet. */
export type Changing<T> = { -readonly [K in keyof T]: T[K] };

/** How much of a step the State records; nothing but the visit if the run is not saved. */
export interface Recording {
  readonly saves: boolean;
  readonly maxSteps: number;
}

/**
 * The progress of a run after a node that returned. The literal has the fields of every other progress object, in
 * their order: the fewer shapes the loop sees, the faster it is.
 *
 * @param known - the progress that the node's result builds on.
 * @param pauses - those that it ended with.
 */
export function advance<D extends object>(
  known: Progress,
  node: GraphNode<D>,
  pauses: readonly PauseRequest[],
  visit: Visit<D>,
  time: string,
  durationMs: number,
  { saves, maxSteps }: Recording,
): Changing<Progress> {
  const { name, exit, phase } = node;
  const isPaused = pauses.length > 0;
  const step = known.step + 1;
  let { steps, counts } = known;
  if (saves) {
    const record = stepRecord(node, visit, step, time, durationMs);
    counts = counts.with(name, record.attempts, record.durationMs, node.index);
    if (maxSteps > 0) steps = steps.with(record);
  } else {
    counts = counts.with(name, 0, 0, node.index);
  }
  return {
    checkpointNode: name,
    phase,
    nextNode: undefined,
    timestamp: time,
    step,
    status: isPaused ? "paused" : exit ? "completed" : "in_progress",
    error: undefined,
    reason: isPaused ? "pause" : exit ? "complete" : "interval",
    counts,
    steps,
    pauses,
    answers: visit.answers,
    unfinished: undefined,
    begun: undefined,
    tasks: visit.tasks,
    rollback: known.rollback,
    recovery: recoveryAfter(step, known.recovery),
    resumes: known.resumes,
    crashes: known.crashes,
    ledger: visit.ledger,
  };
}

/** How a run stops where no further node completes. */
export type Ending<D extends object> =
  | {
      readonly kind: "paused";
      readonly state: State<D>;
      readonly pauses: readonly PauseRequest[];
      /** The node that the run continues with. */
      readonly nextNode: string;
    }
  /** It was resumed with nothing left to do. */
  | { readonly kind: "completed"; readonly state: State<D> }
  | { readonly kind: "failed"; readonly state: State<D>; readonly failure: Failure<D> };

/**
 * The last State of a run that stops.
 *
 * @param answers - those that no pause has taken.
 */
export function ended<D extends object>(ending: Ending<D>, answers: readonly Answer[]): State<D> {
  const { state } = ending;
  switch (ending.kind) {
    case "paused": {
      const { nextNode } = ending;
      const pauses = Object.freeze(ending.pauses);
      return withProgress(state, { status: "paused", reason: "pause", pauses, answers, nextNode });
    }
    case "completed": {
      const status = "completed";
      return withProgress(state, { status, reason: "complete", answers, nextNode: undefined });
    }
    case "failed":
      return failed(state, ending.failure, answers);
  }
}

/** A run that ended early: failed or, if it was only stopped, still in progress. */
function failed<D extends object>(
  state: State<D>,
  { code, node, cause, message }: Failure<D>,
  answers: readonly Answer[],
): State<D> {
  if (code === "ABORTED") {
    const [status, reason] = ["in_progress", "abort"] as const;
    return withProgress(state, { status, error: undefined, reason, answers, nextNode: node });
  }
  const error =
    cause === undefined
      ? { name: "ExecutionError", message: cutMessage(message), node }
      : { name: errorName(cause), message: cutMessage(messageOf(cause)), node, ...stackOf(cause) };
  // If no edge matched, a resume evaluates the edges again.
  const isAtEdge = code === "NO_MATCHING_EDGE" || code === "PREDICATE_FAILED";
  return withProgress(state, {
    status: "failed",
    error: Object.freeze(error),
    reason: "failure",
    answers,
    nextNode: isAtEdge ? undefined : node,
  });
}

/** The recovery record of a run after this step; none once it is further than ever. */
function recoveryAfter(step: number, recovery: Recovery | undefined): Recovery | undefined {
  return recovery === undefined || step > recovery.step ? undefined : recovery;
}

/** The record of a step, including the work of earlier processes. */
function stepRecord<D extends object>(
  { name, phase }: GraphNode<D>,
  visit: Visit<D>,
  step: number,
  completedAt: string,
  durationMs: number,
): StepRecord {
  const { attempts, before, usage, items, failedAttempts, startedAt } = visit;
  const record: Changing<StepRecord> = {
    node: name,
    step,
    phase,
    startedAt,
    completedAt,
    durationMs,
    attempts,
  };
  if (before !== undefined) {
    record.startedAt = before.startedAt;
    record.durationMs += before.durationMs;
    record.attempts += before.attempts;
    if (before.restarts > 0) record.restarts = before.restarts;
  }
  if (usage !== undefined) record.usage = usage;
  if (!items.isEmpty) record.items = items.list();
  if (failedAttempts.length > 0) {
    record.failedAttempts = failedAttempts;
    record.lastAttemptAt = visit.attemptStartedAt;
  }
  return record;
}
