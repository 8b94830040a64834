import { isoNow, msBetween } from "../clock.js";
import { type Edge, END, type GraphNode } from "../graph/node.js";
import { advance, progressOf } from "../state/derive.js";
import type { Ledger } from "../state/ledger.js";
import type { PauseRequest, Progress, Recovery } from "../state/record.js";
import type { State } from "../state/state.js";
import type { StepRecord } from "../state/steps.js";
import type { Settings } from "./config.js";
import { chooseEdge } from "./next.js";
import { breakpoint } from "./pauses.js";
import type { Saver } from "./saver.js";
import type { Tally } from "./tally.js";
import { isDue } from "./triggers.js";
import type { Visit } from "./visit.js";

/** A completed node. */
interface Step<D extends object> {
  /** The State of the run after it. */
  readonly state: State<D>;
  /** The edge to take; `undefined` at an exit point, and if none can be taken. */
  readonly way: Edge<D> | undefined;
  readonly paused: boolean;
  readonly ends: boolean;
  /** Whether to save the State. */
  readonly due: boolean;
}

/** Makes the run's next State from each completed node. Kept apart from the loop, which V8 then compiles better. */
export class StepRecorder<D extends object> {
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #visit: Visit<D>;
  readonly #tally: Tally;
  readonly #pausesAfter: ReadonlySet<string> | undefined;

  constructor(settings: Settings, saver: Saver<D> | undefined, visit: Visit<D>, tally: Tally) {
    this.#settings = settings;
    this.#saver = saver;
    this.#visit = visit;
    this.#tally = tally;
    const { after } = settings.breakpoints ?? {};
    this.#pausesAfter = after && new Set(after);
  }

  /**
   * @param before - the State that the node's result builds on.
   * @param asked - the pauses that it ended with.
   * @param startedAt - when it began.
   */
  record(
    node: GraphNode<D>,
    before: State<D>,
    result: State<D>,
    asked: readonly PauseRequest[],
    startedAt: string,
  ): Step<D> {
    const { name, exit } = node;
    const visit = this.#visit;
    const saver = this.#saver;
    const { bus, interval, triggers, maxSteps } = this.#settings;
    const known = progressOf(before);
    const step = known.step + 1;
    const time = isoNow();
    const isTimed = saver !== undefined || bus.listens("node.complete");
    const durationMs = isTimed ? msBetween(startedAt, time) : 0;
    const pauses = asked.length === 0 && this.#pausesAfter?.has(name) ? after(name) : asked;
    const paused = pauses.length > 0;
    let { steps } = known;
    if (saver === undefined) {
      this.#tally.add(name, 0, 0);
    } else {
      const record = stepRecord(node, visit, step, startedAt, time, durationMs);
      this.#tally.add(name, record.attempts, record.durationMs);
      if (maxSteps > 0) steps = steps.with(record);
    }
    const progress: Changing<Progress> = {
      checkpointNode: name,
      phase: node.phase,
      nextNode: undefined,
      timestamp: time,
      step,
      status: paused ? "paused" : exit ? "completed" : "in_progress",
      error: undefined,
      reason: paused ? "pause" : exit ? "complete" : "interval",
      counts: known.counts,
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
    const state = advance(before, result, progress);
    if (bus.listens("node.complete")) {
      const data = withUsage({ node: name, step, durationMs }, visit.ledgerBefore, visit.ledger);
      bus.emit("node.complete", this.#settings.name, visit.runId, data, time);
    }
    // The edge is chosen before the save, so that the checkpoint records where a resume would continue.
    const way = exit ? undefined : chooseEdge(state, node);
    const ends = exit || (way?.to === END && !paused);
    if (way !== undefined && way.to !== END) progress.nextNode = way.to.name;
    if (ends && !exit) {
      progress.status = "completed";
      progress.reason = "complete";
    }
    // The end is always saved: only one of two writers that get here may clean up.
    let due = saver !== undefined && (step % interval === 0 || ends || paused);
    if (triggers.length > 0 && !paused && !ends) {
      const reason = this.#triggered(state, before);
      if (reason !== undefined) {
        due = true;
        progress.reason = reason;
      }
    }
    if (saver?.adaptive !== undefined) {
      const { costUsd } = progress.ledger.usage;
      const isWorthIt = saver.adaptive.isDue({
        name,
        next: progress.nextNode,
        durationMs,
        costUsd,
      });
      if (isWorthIt && !due) {
        due = true;
        progress.reason = "adaptive";
      }
    }
    if (due || ends) progress.counts = this.#tally.counts();
    return { state, way, paused, ends, due };
  }

  /** The reason of the first trigger that is due for a State. */
  #triggered(state: State<D>, before: State<D>): string | undefined {
    const sinceSave = this.#saver?.age ?? 0;
    const { triggers } = this.#settings;
    return triggers.find((trigger) => isDue(trigger, state, { before, sinceSave }))?.reason;
  }
}

/** A record that nobody else has access to yet. */
type Changing<T> = { -readonly [K in keyof T]: T[K] };

function after(node: string): readonly PauseRequest[] {
  return Object.freeze([breakpoint("after", node)]);
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
  startedAt: string,
  completedAt: string,
  durationMs: number,
): StepRecord {
  const { attempts, before, usage, items, failedAttempts } = visit;
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

/** The data of an event, with the usage in between. */
export function withUsage<T extends object>(data: T, before: Ledger, after: Ledger): T {
  const usage = after.usageSince(before);
  return usage === undefined ? data : { ...data, usage };
}
