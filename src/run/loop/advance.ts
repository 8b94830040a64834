import { isoNow, msBetween } from "../../clock.js";
import { CheckpointConflictError, isWaymarkError, messageOf, show } from "../../errors.js";
import type { EventMap } from "../../event-map.js";
import type { EventBus, EventType } from "../../events.js";
import type { Edge, GraphNode, NodeResult } from "../../graph/node.js";
import { showTarget, targetOf } from "../../graph/topology.js";
import { progressOf } from "../../state/derive.js";
import type { Progress } from "../../state/fields.js";
import type { Ledger } from "../../state/ledger.js";
import type { PauseRequest } from "../../state/pauses.js";
import type { Reason } from "../../state/reasons.js";
import { type Reducer, reduced } from "../../state/reducers.js";
import { isPlainObject } from "../../state/shape.js";
import { type Patch, recordOf, State } from "../../state/state.js";
import type { StepRecord } from "../../state/steps.js";
import type { Visit } from "../visit/visit.js";
import { decided, Failure } from "./failure.js";

/** A record that nobody else has access to yet. */
export type Changing<T> = { -readonly [K in keyof T]: T[K] };

/**
 * The progress of a run after a node that returned. The literal has the fields of every other progress object, in
 * their order: the fewer shapes the loop sees, the faster it is.
 *
 * @param known - the progress that the node's result builds on.
 * @param pauses - those that it ended with.
 * @param saves - whether the run is saved; otherwise nothing but the visit is recorded.
 */
export function advance<D extends object>(
  known: Progress,
  node: GraphNode<D>,
  pauses: readonly PauseRequest[],
  visit: Visit<D>,
  time: string,
  durationMs: number,
  saves: boolean,
): Changing<Progress> {
  const { name, phase } = node;
  const isPaused = pauses.length > 0;
  const step = known.step + 1;
  let { steps, counts, recovery } = known;
  // The run is further than ever.
  if (recovery !== undefined && step > recovery.step) recovery = undefined;
  if (saves) {
    const record = stepRecord(node, visit, step, time, durationMs);
    counts = counts.with(name, record.attempts, record.durationMs);
    if (visit.run.records) steps = steps.with(record);
  } else {
    counts = counts.with(name, 0, 0);
  }
  return {
    checkpointNode: name,
    phase,
    nextNode: undefined,
    timestamp: time,
    step,
    status: isPaused ? "paused" : "in_progress",
    error: undefined,
    reason: (isPaused ? "pause" : "interval") satisfies Reason,
    counts,
    steps,
    pauses,
    answers: visit.answers,
    unfinished: undefined,
    begun: undefined,
    tasks: visit.tasks,
    rollback: known.rollback,
    recovery,
    resumes: known.resumes,
    crashes: known.crashes,
    ledger: visit.ledger,
  };
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
    startedAt: before.startedAt || startedAt,
    completedAt,
    durationMs: before.durationMs + durationMs,
    attempts: before.attempts + attempts,
  };
  if (before.restarts > 0) record.restarts = before.restarts;
  if (usage !== undefined) record.usage = usage;
  if (!items.isEmpty) record.items = items.list();
  if (failedAttempts.length > 0) {
    record.failedAttempts = failedAttempts;
    record.lastAttemptAt = visit.attemptStartedAt;
  }
  return record;
}

/** That a run can take no edge from a node: none matches, or a predicate failed. */
export interface NoEdge<D extends object> {
  /** Tells it from an edge. */
  readonly to: undefined;
  readonly failure: Failure<D>;
  /** How many edges did not match. */
  readonly tried: number;
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
      const isFree = edge.predicate === undefined;
      if (isFree || decided(edge, matches, predicateOf, state, edge.from)) return edge;
      tried++;
    }
  } catch (failure) {
    return { to: undefined, failure: failure as Failure<D>, tried };
  }
  const targets = edges.map((edge) => showTarget(targetOf(edge))).join(", ") || "there is none";
  const problem = `no edge from ${show(node.name)} matches (to: ${targets})`;
  const failure = new Failure("NO_MATCHING_EDGE", node.name, state, problem);
  return { to: undefined, failure, tried };
}

/** Apart from the choice, where a closure would cost every step. */
function matches<D extends object>(edge: Edge<D>, state: State<D>): unknown {
  return edge.predicate?.(state);
}

function predicateOf<D extends object>(edge: Edge<D>): string {
  return `predicate from ${show(edge.from)} to ${showTarget(targetOf(edge))}`;
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
    throw badResult(state, node, problem);
  }
  if (isPlainObject(returned)) {
    if (reducers === undefined) return state.merge(returned);
    return state.merge(throughReducers(state, node, returned, reducers));
  }
  const problem = `must return a State or a plain object to merge; got ${show(returned)}`;
  throw badResult(state, node, problem);
}

function badResult<D extends object>(state: State<D>, node: string, problem: string): Failure<D> {
  return new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
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
    throw badResult(state, node, `returned a value that its reducer rejects: ${error.message}`);
  }
}

/** Emits what happens to one run. What is sent at every step is built only if somebody listens. */
export class RunEvents<D extends object> {
  readonly #bus: EventBus;
  readonly #source: string;
  readonly #runId: string;

  constructor(bus: EventBus, source: string, runId: string) {
    this.#bus = bus;
    this.#source = source;
    this.#runId = runId;
  }

  nodeStarted(node: string, state: State<D>, time: string): void {
    const { step } = state;
    if (this.#bus.listens("cycle.detected")) {
      const visitCount = progressOf(state).counts.visitsOf(node) + 1;
      if (visitCount > 1) this.emit("cycle.detected", { node, visitCount, step }, time);
    }
    if (this.#bus.listens("node.start")) this.emit("node.start", { node, step }, time);
  }

  /** @param before - the ledger as it was when the node began. */
  nodeCompleted(state: State<D>, durationMs: number, before: Ledger, time: string): void {
    const { checkpointNode: node, step, ledger } = state;
    const data = withUsage({ node, step, durationMs }, before, ledger);
    this.emit("node.complete", data, time);
  }

  nodeFailed(
    { node, message: error, cause }: Failure<D>,
    step: number,
    startedAt: string,
    [before, after]: readonly [Ledger, Ledger],
  ): void {
    const durationMs = msBetween(startedAt, isoNow());
    const data = { node, step, durationMs, error, cause };
    this.emit("node.complete", withUsage(data, before, after));
  }

  /** The edges that were tried, and the one that was taken. */
  edgeChosen({ edges }: GraphNode<D>, chosen: Edge<D> | NoEdge<D>, time?: string): void {
    const isTaken = chosen.to !== undefined;
    if (this.#bus.listens("edge.evaluate")) {
      const tried = isTaken ? edges.indexOf(chosen) : chosen.tried;
      for (const { events } of edges.slice(0, tried))
        this.emit("edge.evaluate", events.refused, time);
      if (isTaken) this.emit("edge.evaluate", chosen.events.taken, time);
    }
    if (isTaken && this.#bus.listens("edge.transition"))
      this.emit("edge.transition", chosen.events.transition, time);
  }

  /** @param before - the ledger as it was when the node that pauses began. */
  paused(state: State<D>, before: Ledger, after: Ledger): void {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    this.emit("graph.pause", withUsage({ node, step: state.step, reason }, before, after));
  }

  /** The run ended with an error that is not one of its own, such as a conflict. */
  brokeOff(error: unknown, latest: State<D> | undefined): void {
    const { checkpointNode: node = "", step = 0 } = latest ?? {};
    const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
    this.emit("graph.fail", { node, step, code, error: messageOf(error), cause: error });
  }

  emit<T extends EventType>(type: T, data: EventMap[T], time?: string): void {
    this.#bus.emit(type, this.#source, this.#runId, data, time);
  }
}

/** The data of an event, with the usage in between. */
function withUsage<T extends object>(data: T, before: Ledger, after: Ledger): T {
  const usage = after.usageSince(before);
  return usage === undefined ? data : { ...data, usage };
}
