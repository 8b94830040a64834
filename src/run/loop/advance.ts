import { isWaymarkError, messageOf, show } from "../../errors.js";
import type { Edge, GraphNode, NodeResult } from "../../graph/node.js";
import { showTarget, targetOf } from "../../graph/topology.js";
import { withProgress } from "../../state/derive.js";
import type { Progress } from "../../state/fields.js";
import type { Answer, PauseRequest } from "../../state/pauses.js";
import type { Recovery } from "../../state/record.js";
import { type Reducer, reduced } from "../../state/reducers.js";
import { isPlainObject } from "../../state/shape.js";
import { type Patch, recordOf, State } from "../../state/state.js";
import type { StepRecord } from "../../state/steps.js";
import type { Visit } from "../visit/visit.js";
import { cutMessage, errorName, Failure, stackOf } from "./failure.js";

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

/** That a run can take no edge from a node: none matches, or a predicate failed. */
export class NoEdge<D extends object> {
  readonly failure: Failure<D>;
  /** Tells it from an edge, faster than its class does. */
  readonly to = undefined;
  /** How many edges did not match. */
  readonly tried: number;

  constructor(failure: Failure<D>, tried: number) {
    this.failure = failure;
    this.tried = tried;
  }

  /** The failure, once its State is saved. */
  at(state: State<D>): Failure<D> {
    const { code, node, message, cause } = this.failure;
    return new Failure(code, node, state, message, cause);
  }
}

/**
 * The edge that a run takes from a node: the first, in the order they were added, whose predicate returns `true` or
 * that has none.
 */
export function chooseEdge<D extends object>(
  state: State<D>,
  node: GraphNode<D>,
): Edge<D> | NoEdge<D> {
  const { edges } = node;
  let tried = 0;
  try {
    for (const edge of edges) {
      if (edge.predicate === undefined || isTrue(edge, state)) return edge;
      tried++;
    }
  } catch (failure) {
    return new NoEdge(failure as Failure<D>, tried);
  }
  const targets = edges.map((edge) => showTarget(targetOf(edge))).join(", ") || "there is none";
  const problem = `no edge from ${show(node.name)} matches (to: ${targets})`;
  return new NoEdge(new Failure("NO_MATCHING_EDGE", node.name, state, problem), tried);
}

/** The result of an edge's predicate. */
function isTrue<D extends object>(edge: Edge<D>, state: State<D>): boolean {
  let result: unknown;
  try {
    result = edge.predicate?.(state);
  } catch (error) {
    throw predicateFailed(edge, state, `failed: ${messageOf(error)}`, error);
  }
  if (typeof result === "boolean") return result;
  throw predicateFailed(edge, state, `must return true or false; got ${show(result)}`);
}

function predicateFailed<D extends object>(
  edge: Edge<D>,
  state: State<D>,
  problem: string,
  cause?: unknown,
): Failure<D> {
  const way = `from ${show(edge.from)} to ${showTarget(targetOf(edge))}`;
  return new Failure(
    "PREDICATE_FAILED",
    edge.from,
    state,
    `the predicate ${way} ${problem}`,
    cause,
  );
}

/** Whether a value must be awaited. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/** Converts a node's return value to the run's State. */
export function accept<D extends object>(
  state: State<D>,
  node: string,
  returned: NodeResult<D>,
  reducers?: Readonly<Record<string, Reducer<unknown>>>,
): State<D> {
  if (returned instanceof State) {
    if (isOfRun(returned, state)) return returned;
    const problem = `returned the State of run ${show(returned.runId)}: build on the State it is given`;
    throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
  }
  if (typeof returned === "object" && returned !== null && isPlainObject(returned)) {
    if (reducers === undefined) return state.merge(returned);
    return state.merge(throughReducers(state, node, returned, reducers));
  }
  const problem = `must return a State or a plain object to merge; got ${show(returned)}`;
  throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
}

/**
 * Whether two States belong to the same run. Most share one identity object, which is faster to compare than strings.
 */
function isOfRun<D extends object>(one: State<D>, other: State<D>): boolean {
  return recordOf(one).identity === recordOf(other).identity || one.runId === other.runId;
}

function throughReducers<D extends object>(
  state: State<D>,
  node: string,
  returned: object,
  reducers: Readonly<Record<string, Reducer<unknown>>>,
): Patch<D> {
  try {
    return reduced(state.data, returned, reducers) as Patch<D>;
  } catch (error) {
    if (!isWaymarkError(error, "CONFIG")) throw error;
    const problem = `returned a value that its reducer rejects: ${error.message}`;
    throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`, error);
  }
}
