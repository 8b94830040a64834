import { isoNow, lastNow, now } from "../clock.js";
import { CheckpointConflictError, messageOf, type SchemaError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import { both, type EventType } from "../events.js";
import { type Edge, END, type End, type GraphNode } from "../graph/node.js";
import { Pause } from "../graph/pause.js";
import { advance, isOpaque, progressOf, withProgress } from "../state/derive.js";
import type { Ledger } from "../state/ledger.js";
import {
  noPauses,
  type PauseRequest,
  type Progress,
  type Recovery,
  type Signal,
} from "../state/record.js";
import { validated } from "../state/schema.js";
import { recordOf, type State, sinkOf, stateOf } from "../state/state.js";
import { NodeCounts, type StepRecord } from "../state/steps.js";
import type { Settings } from "./config.js";
import { RunContext } from "./context.js";
import {
  aborted,
  DRAINS,
  Failure,
  isStop,
  nameOf,
  nodeFailed,
  stackOf,
  tooLong,
} from "./failure.js";
import { chooseEdge, emitChoice, nextNode } from "./next.js";
import { Path } from "./path.js";
import { breakpoint, cannotPause, pausesOf } from "./pauses.js";
import { accept, isPromise } from "./result.js";
import type { Lost, Saver } from "./saver.js";
import { checkRoom } from "./signals.js";
import type { Gate } from "./stream.js";
import { isDue } from "./triggers.js";
import { Visit } from "./visit.js";

/** What a run needs of its graph. */
export interface Plan<D extends object> {
  readonly settings: Settings;
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D>;
  /** The error if this process has lost its claim on the run; asked before each node. */
  readonly lost?: Lost | undefined;
  /** The node that the State says has completed; `undefined` starts at the entry point. */
  readonly after: GraphNode<D> | undefined;
  /** The node that a resumed run was in the middle of. */
  readonly unfinished?: GraphNode<D> | undefined;
  /** Whether the run has stopped before its first node already. */
  readonly skipBreakpoint?: boolean;
  /** Is awaited before each node, for a reader of events who is slower than the run. */
  readonly gate?: Gate | undefined;
  /** Hears what each node has changed. */
  readonly onValues?: ValuesListener<D> | undefined;
  /** `undefined` when nothing is saved. */
  readonly saver: Saver<D> | undefined;
}

/** Hears of each node that completed with what it was given and what became of it. */
export type ValuesListener<D extends object> = (
  node: string,
  before: State<D>,
  after: State<D>,
) => void;

/** One walk of a graph, from its entry point or from a checkpoint, to an exit point or an error. */
export class Run<D extends object> {
  readonly #plan: Plan<D>;
  readonly #settings: Settings;
  readonly #runId: string;
  readonly #controller = new AbortController();
  readonly #path = new Path();
  readonly #names: readonly string[];
  /** How often each node completed, how many attempts that took and how long it worked, in the order of the names. */
  readonly #completed: number[];
  readonly #attempts: number[];
  readonly #durations: number[];
  readonly #visit: Visit<D>;
  readonly #before: ReadonlySet<string> | undefined;
  readonly #after: ReadonlySet<string> | undefined;
  #draining = false;
  /** What `signal.aborted` says, which asks more of an AbortSignal than a step can afford. */
  #aborted = false;
  #ended = false;
  /** The signals that the run's last save carries, once it is clear which save that is. */
  #lastSignals: readonly Signal[] | undefined;

  constructor(plan: Plan<D>, state: State<D>) {
    const { runId } = state;
    const { before, after } = plan.settings.breakpoints ?? {};
    this.#before = before && new Set(before);
    this.#after = after && new Set(after);
    this.#visit = new Visit(
      plan.settings,
      plan.settings.mode === "exit" ? undefined : plan.saver,
      state,
      plan.saver !== undefined && plan.settings.maxSteps > 0,
      () => this.#counts(),
      (error) => this.#abort(error),
    );
    this.#plan = plan;
    this.#settings = plan.settings;
    this.#runId = runId;
    const { counts } = progressOf(state);
    this.#names = counts.namesWith(plan.nodes.map((node) => node.name));
    [this.#completed, this.#attempts, this.#durations] = counts.arrays(this.#names);
  }

  /** Runs to an exit point. A new run is saved first, so that one that dies in its first node can be resumed. */
  async go(state: State<D>, resumed: boolean, signal: AbortSignal | undefined): Promise<State<D>> {
    const { bus } = this.#settings;
    const own = sinkOf(state);
    const abort = (): void => {
      this.#abort(signal?.reason);
      this.#plan.gate?.open();
    };
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    try {
      const told = stateOf<D>(recordOf(state), own === undefined ? bus : both(own, bus));
      const last = await this.#walk(await this.#begin(told, resumed), resumed);
      return stateOf(recordOf(last), own);
    } catch (error) {
      throw await this.#end(error);
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#ended = true;
      this.#visit.close();
    }
  }

  /** The State that the running node was given. */
  get state(): State<D> {
    return this.#visit.state;
  }

  /** Why an answer was refused in the node that paused last. */
  get refusal(): SchemaError | undefined {
    return this.#visit.refusal;
  }

  /** Stops the run as soon as it can, so that it can be resumed. */
  cancel(reason: unknown): void {
    this.#abort(reason);
    this.#plan.gate?.open();
  }

  /**
   * Keeps an answer for a pause to come. It is saved when the promise resolves.
   *
   * @returns `false` if the run stopped before it could be kept.
   * @throws ConfigError if there are too many.
   */
  async signal(signal: Signal): Promise<boolean> {
    if (this.#ended) return false;
    checkRoom(this.#runId, this.#visit.signals);
    this.#visit.addSignal(signal);
    const isSaved = this.#plan.saver !== undefined && this.#settings.mode !== "exit";
    while (!this.#ended) {
      if (!isSaved && this.#lastSignals === undefined) return true;
      const saving = this.#visit.saveSignals();
      await (saving ?? this.#visit.next());
      if (saving !== undefined) return true;
    }
    return !this.#visit.hasSignal(signal) || this.#lastSignals?.includes(signal) === true;
  }

  /** Ends the run without another word to its store: another process has it. */
  lose(error: CheckpointConflictError): void {
    this.#abort(error);
    this.#plan.gate?.open();
  }

  /** Lets the running node finish, saves, and stops so that the run can be resumed. */
  drain(): void {
    this.#draining = true;
    this.#visit.drain();
    this.#plan.gate?.open();
  }

  async #begin(state: State<D>, resumed: boolean): Promise<State<D>> {
    this.#emit("graph.start", { entryPoint: this.#plan.entry.name, step: state.step, resumed });
    const reason = resumed ? state.reason : "start";
    const { nextNode, unfinished, steps } = progressOf(state);
    const isNew = this.#plan.after === undefined && unfinished === undefined;
    const first = withProgress(state, {
      status: "in_progress",
      error: undefined,
      reason,
      nextNode: isNew ? this.#plan.entry.name : nextNode,
      steps: steps.withLimit(this.#settings.maxSteps),
    });
    const { saver } = this.#plan;
    const saves = saver !== undefined && !resumed && this.#settings.mode !== "exit";
    return saves ? saver.save(first) : first;
  }

  /** The one loop: whatever happens at each step, happens here. */
  async #walk(start: State<D>, resumed: boolean): Promise<State<D>> {
    const { bus, name: source, interval, maxIterations, triggers, reducers } = this.#settings;
    const { saver, gate, lost, onValues } = this.#plan;
    const { signal } = this.#controller;
    const completed = this.#completed;
    const visit = this.#visit;
    const checksNodes = this.#settings.validatesNodes ? this.#settings.schema : undefined;
    const background = saver?.inBackground === true;
    const adaptive = saver?.adaptive;
    const lists = this.#settings.maxSteps > 0;
    let state = start;
    let time = isoNow();
    let startedAt = time;
    let started = lastNow();
    const first = this.#firstNode(state);
    if (first === END) return this.#finish(state);
    let node: GraphNode<D> = first;
    if (resumed) {
      const { checkpointNode, step } = state;
      this.#emit("checkpoint.resume", { node: checkpointNode, step, resumeNode: node.name });
    }
    let skipBreakpoint = this.#plan.skipBreakpoint;
    for (;;) {
      const { name, index, exit } = node;
      if (gate !== undefined) await gate.wait();
      // After the process was stopped, its clock knows that the claim ran out before a timer does.
      lost?.();
      if (this.#aborted) throw stopped(state, name, signal.reason);
      if (this.#draining) throw aborted(state, name, DRAINS);
      if (background) saver.check(state);
      // First, so that a run which failed at a node has passed the breakpoint before it.
      if (this.#before?.has(name) && !skipBreakpoint) {
        return this.#pause(state, name, [breakpoint("before", name)]);
      }
      if (state.step >= maxIterations) throw tooLong(state, name);
      skipBreakpoint = false;
      this.#path.add(name);
      const visits = completed[index] ?? 0;
      if (visits > 0 && bus.listens("cycle.detected")) {
        const data = { node: name, visitCount: visits + 1, step: state.step };
        bus.emit("cycle.detected", source, this.#runId, data, time);
      }
      if (bus.listens("node.start")) {
        bus.emit("node.start", source, this.#runId, { node: name, step: state.step }, time);
      }

      const timed = bus.listens("node.complete");
      const { ledger } = visit;
      const given = state;
      let result: State<D>;
      let pauses = noPauses;
      visit.begin(name, state, startedAt, started);
      try {
        const returned = node.run(state, new RunContext(visit, signal, name, state.step, 1));
        let settled = isPromise(returned) ? await returned : returned;
        const base = visit.end(state);
        state = isPromise(base) ? await base : base;
        if (settled instanceof Pause) {
          if (saver === undefined) throw cannotPause(settled.request);
          pauses = Object.freeze([settled.request]);
          settled = settled.state;
        }
        result = accept(state, name, settled, reducers);
        if (checksNodes !== undefined) await validated("data", result.data, checksNodes);
        // What can't be saved must not count as done; all else was settled when it came in.
        if (saver !== undefined && isOpaque(result)) result.toJSON();
      } catch (error) {
        const left = await visit.fail();
        if (visit.failure !== undefined) throw visit.failure;
        // A node that asked for a pause and got no answer pauses the run, however it took that.
        const asked = pausesOf(error, visit.asked);
        const [pause] = asked;
        if (signal.reason instanceof CheckpointConflictError) throw signal.reason;
        if (pause !== undefined && saver !== undefined)
          return this.#pause(left, name, asked, ledger);
        const cause = pause === undefined ? error : cannotPause(pause);
        const stop = { signal, draining: visit.draining };
        const from = isStop(cause, stop) ? left : visit.failed(left);
        const failure = nodeFailed(from, name, cause, stop);
        const data = {
          node: name,
          step: state.step,
          durationMs: now() - started,
          error: failure.message,
          cause,
        };
        this.#emit("node.complete", withUsage(data, ledger, visit.ledger));
        throw failure;
      }

      const before = state;
      const step = state.step + 1;
      time = isoNow();
      const durationMs = lastNow() - started;
      completed[index] = visits + 1;
      if (pauses.length === 0 && this.#after?.has(name))
        pauses = Object.freeze([breakpoint("after", name)]);
      const paused = pauses.length > 0;
      const known = progressOf(state);
      let { steps } = known;
      if (saver !== undefined) {
        const record = stepRecord(node, visit, step, startedAt, time, durationMs);
        this.#attempts[index] = (this.#attempts[index] ?? 0) + record.attempts;
        this.#durations[index] = (this.#durations[index] ?? 0) + record.durationMs;
        if (lists) steps = steps.with(record);
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
        signals: visit.signals,
        unfinished: undefined,
        begun: undefined,
        tasks: visit.tasks,
        rollback: known.rollback,
        ledger: visit.ledger,
        recovery: recoveryAfter(step, known.recovery),
        crashes: known.crashes,
      };
      state = advance(state, result, progress);
      if (timed) {
        const data = { node: name, step, durationMs };
        bus.emit("node.complete", source, this.#runId, withUsage(data, ledger, visit.ledger), time);
      }
      // The way is chosen before the save, so that the checkpoint says where a resume would continue.
      const way: Edge<D> | undefined = exit ? undefined : chooseEdge(state, node);
      const ends = exit || (way?.to === END && !paused);
      if (way !== undefined && way.to !== END) progress.nextNode = way.to.name;
      if (ends && !exit) {
        progress.status = "completed";
        progress.reason = "complete";
      }
      if (ends || paused) this.#lastSignals = progress.signals;
      onValues?.(name, given, state);
      // An end is always saved: of two writers who get here, only one may clean up.
      let due = saver !== undefined && (step % interval === 0 || ends || paused);
      if (triggers.length > 0 && !paused && !ends) {
        const reason = this.#triggered(state, before);
        if (reason !== undefined) {
          due = true;
          progress.reason = reason;
        }
      }
      if (adaptive?.isDue(durationMs, progress.ledger.usage.costUsd) && !due) {
        due = true;
        progress.reason = "adaptive";
      }
      if (due || ends) progress.counts = this.#counts();
      if (due && background && !ends && !paused) {
        saver.defer(state);
      } else if (due && saver !== undefined) {
        if (background) state = await saver.settled(state);
        try {
          state = saver.accept(state, await saver.put(state));
        } catch (error) {
          state = saver.refuse(state, error, paused);
        }
        time = isoNow();
      }
      startedAt = time;
      started = lastNow();
      if (paused) return this.#paused(state);
      if (way !== undefined) emitChoice(state, node, way, source, bus, time);
      if (ends) return this.#complete(state);
      // No edge was taken before the save; what is wrong with them is found again, and thrown.
      const next: GraphNode<D> | End = way?.to ?? nextNode(state, node, source, bus, time);
      if (next === END) return this.#finish(state);
      node = next;
    }
  }

  /** The reason of the first trigger that wants a State saved. */
  #triggered(state: State<D>, before: State<D>): string | undefined {
    const sinceSave = this.#plan.saver?.age ?? 0;
    const { triggers } = this.#settings;
    return triggers.find((trigger) => isDue(trigger, state, { before, sinceSave }))?.reason;
  }

  /** The node to run first; the end when a run that was paused at an exit point has got its input. */
  #firstNode(state: State<D>): GraphNode<D> | End {
    const { entry, after, unfinished } = this.#plan;
    if (unfinished !== undefined) return unfinished;
    if (after?.exit) return END;
    return after === undefined
      ? entry
      : nextNode(state, after, this.#settings.name, this.#settings.bus);
  }

  /** Pauses before the current node completes; `before` is what was used when it began. */
  async #pause(
    state: State<D>,
    nextNode: string,
    pauses: readonly PauseRequest[],
    before?: Ledger,
  ): Promise<State<D>> {
    const paused = withProgress(state, {
      status: "paused",
      reason: "pause",
      pauses: Object.freeze(pauses),
      signals: this.#seal(),
      counts: this.#counts(),
      nextNode,
    });
    return this.#paused((await this.#plan.saver?.save(paused, true)) ?? paused, before);
  }

  #paused(state: State<D>, before = this.#visit.ledger): State<D> {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    const data = { node, step: state.step, reason };
    this.#emit("graph.pause", withUsage(data, before, this.#visit.ledger));
    return state;
  }

  async #finish(state: State<D>): Promise<State<D>> {
    const end = { status: "completed", reason: "complete", nextNode: undefined } as const;
    const done = withProgress(state, { ...end, signals: this.#seal() });
    return this.#complete((await this.#plan.saver?.save(done)) ?? done);
  }

  async #complete(state: State<D>): Promise<State<D>> {
    const { saver } = this.#plan;
    const left = this.#settings.preserve || saver === undefined ? state : await saver.clean(state);
    this.#emit("graph.complete", { exitPoint: state.checkpointNode, step: state.step });
    return left;
  }

  /** The run ended early: leaves a checkpoint to resume from, and gives the error to throw. */
  async #end(error: unknown): Promise<unknown> {
    if (!(error instanceof Failure)) {
      this.#abort(error);
      const { checkpointNode = "", step = 0 } = this.#plan.saver?.latest ?? {};
      const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
      const message = messageOf(error);
      this.#emit("graph.fail", { node: checkpointNode, step, code, error: message, cause: error });
      return error;
    }
    const { code, node, message, cause } = error;
    const state = await this.#leave(error as Failure<D>);
    this.#emit("graph.fail", { node, step: state.step, code, error: message, cause });
    return error.toError(state, this.#path.list());
  }

  /** Saves what a failed run knew: as failed, or, if it was only cancelled, as still going on. */
  async #leave({ state, code, node, cause, message }: Failure<D>): Promise<State<D>> {
    const { saver } = this.#plan;
    const cancelled = code === "ABORTED";
    if (code === "CHECKPOINT_SAVE") return state;
    // Saved even if nothing is new: else a resume would take it for a crash.
    if (cancelled && state.reason === "abort" && this.#isSaved(state)) return state;
    const error =
      cause === undefined
        ? { name: "ExecutionError", message, node }
        : { name: nameOf(cause), message: messageOf(cause), node, ...stackOf(cause) };
    // Where no edge matched, a resume looks at the edges again.
    const isAtEdge = code === "NO_MATCHING_EDGE" || code === "PREDICATE_FAILED";
    const left = withProgress(state, {
      status: cancelled ? "in_progress" : "failed",
      error: cancelled ? undefined : Object.freeze(error),
      reason: cancelled ? "abort" : "failure",
      counts: this.#counts(),
      signals: this.#seal(),
      nextNode: isAtEdge ? undefined : node,
    });
    // The run's own error is what the caller must see; an event tells that this save failed too.
    const unsaved = (error: unknown): State<D> => {
      if (error instanceof CheckpointConflictError) this.#abort(error);
      return left;
    };
    return saver?.save(left).catch(unsaved) ?? left;
  }

  /** Whether the store has all that a State of this run has, and every signal. */
  #isSaved(state: State<D>): boolean {
    const { saver } = this.#plan;
    if (saver?.latest === undefined || !saver.has(state)) return false;
    return progressOf(saver.latest).signals === this.#visit.signals;
  }

  /** The signals that the run's last save carries; one that comes later is kept some other way. */
  #seal(): readonly Signal[] {
    this.#lastSignals = this.#visit.signals;
    return this.#lastSignals;
  }

  #abort(reason: unknown): void {
    this.#aborted = true;
    this.#controller.abort(reason);
  }

  #counts(): NodeCounts {
    const [visits, attempts, durations] = [this.#completed, this.#attempts, this.#durations];
    return new NodeCounts(this.#names, visits.slice(), attempts.slice(), durations.slice());
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#runId, data);
  }
}

/** A record that nobody else has seen yet. */
type Changing<T> = { -readonly [K in keyof T]: T[K] };

/** What ends a run that was cancelled: one that another process has now, without a word to its store. */
function stopped<D extends object>(state: State<D>, node: string, reason: unknown): unknown {
  return reason instanceof CheckpointConflictError ? reason : aborted(state, node, reason);
}

/** What a run that has come to this step still knows of its recoveries: nothing, once it is further than ever. */
function recoveryAfter(step: number, recovery: Recovery | undefined): Recovery | undefined {
  return recovery === undefined || step > recovery.step ? undefined : recovery;
}

/** The record of a step, with what earlier processes did of it. */
function stepRecord<D extends object>(
  { name, phase }: GraphNode<D>,
  visit: Visit<D>,
  step: number,
  startedAt: string,
  completedAt: string,
  durationMs: number,
): StepRecord {
  const { attempts, before, usage, items } = visit;
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
  return record;
}

function withUsage<T extends object>(data: T, before: Ledger, after: Ledger): T {
  const usage = after.usageSince(before);
  return usage === undefined ? data : { ...data, usage };
}
