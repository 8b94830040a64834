import { CallScope } from "../../call-scope.js";
import { isoNow, msBetween } from "../../clock.js";
import { abortWith, type Deferred, defer } from "../../concurrency.js";
import { CheckpointConflictError, type SchemaError } from "../../errors.js";
import { both } from "../../events.js";
import { type Edge, END, type End, type GraphNode } from "../../graph/node.js";
import { Pause } from "../../graph/pause.js";
import {
  advance as advanced,
  isOpaque,
  type ProgressChanges,
  progressOf,
  withProgress,
} from "../../state/derive.js";
import { isReason } from "../../state/fields.js";
import type { Ledger } from "../../state/ledger.js";
import { type Answer, noPauses, type PauseRequest } from "../../state/pauses.js";
import type { Reason } from "../../state/reasons.js";
import { validated } from "../../state/schema.js";
import { symbolOf } from "../../state/shape.js";
import { recordOf, State, sinkOf, stateOf } from "../../state/state.js";
import type { Settings } from "../config.js";
import type { ValuesListener } from "../handles/stream.js";
import { breakpoint, cannotPause, checkRoom, pausesOf } from "../pauses/pauses.js";
import type { Saver } from "../saving/saver.js";
import { isDue } from "../saving/triggers.js";
import { RunContext } from "../visit/context.js";
import { Visit } from "../visit/visit.js";
import { accept, advance, chooseEdge, type NoEdge, RunEvents } from "./advance.js";
import { RunControl } from "./control.js";
import { aborted, DRAINS, Failure, isStop, nodeFailed, tooLong } from "./failure.js";

/** Where a run starts, and what it is given for the way. */
export interface Plan<D extends object> {
  readonly settings: Settings;
  readonly entry: GraphNode<D>;
  /** The last completed node of the State; `undefined` starts at the entry point. */
  readonly after: GraphNode<D> | undefined;
  /** The node that a resumed run was inside. */
  readonly unfinished?: GraphNode<D> | undefined;
  readonly isResumed: boolean;
  /** Whether the run has already stopped at the breakpoint before its first node. */
  readonly skipBreakpoint?: boolean;
  /** Receives what each node has changed. */
  readonly onValues?: ValuesListener<D> | undefined;
  /** The caller's signal. */
  readonly signal?: AbortSignal | undefined;
  /** `undefined` if nothing is saved. */
  readonly saver: Saver<D> | undefined;
}

/** The work on a run in this process, from before it is claimed until it has stopped. */
export class RunSession<D extends object> extends RunControl {
  /** The scope in which its nodes are called. */
  readonly scope = new CallScope();
  /** Its walk through the graph; `undefined` before that has begun. */
  loop: RunLoop<D> | undefined;
  /** The State with which it stops, or its error. */
  readonly result: Promise<State<D>>;
  /** Resolved when the walk begins, or the run stops before. */
  #begun: Deferred<void> | undefined;

  constructor(runId: string, work: (session: RunSession<D>) => Promise<State<D>>) {
    super(runId);
    this.result = work(this).finally(() => this.#begun?.resolve());
  }

  /** Runs from a State to an exit point, a pause or an error. */
  walk(state: State<D>, plan: Plan<D>): Promise<State<D>> {
    const loop = new RunLoop(plan, state, this);
    this.loop = loop;
    this.#begun?.resolve();
    return this.scope.run(() => loop.run(state));
  }

  /** Keeps an answer for a later pause; `false` if the run stopped before it could be kept. */
  async answer(answer: Answer): Promise<boolean> {
    this.#begun ??= defer();
    if (this.loop === undefined) await this.#begun.promise;
    return this.loop?.answer(answer) ?? false;
  }
}

/** A node that has completed. */
interface Step<D extends object> {
  /** The State of the run after it. */
  readonly state: State<D>;
  /** The edge to take, or why there is none; `undefined` at an exit point. */
  readonly way: Edge<D> | NoEdge<D> | undefined;
  /** Whether to save the State. */
  readonly due: boolean;
}

/** The walk of a run through its graph, from the entry point or a checkpoint to an exit point or an error. */
export class RunLoop<D extends object> {
  readonly #plan: Plan<D>;
  readonly #control: RunControl;
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #path = new Path();
  readonly #visit: Visit<D>;
  readonly #events: RunEvents<D>;
  /** The answers in the run's last save, once it is known which save that is; later ones are saved separately. */
  #lastAnswers: readonly Answer[] | undefined;
  #ended = false;

  constructor(plan: Plan<D>, state: State<D>, control: RunControl) {
    const { settings, saver } = plan;
    this.#plan = plan;
    this.#control = control;
    this.#settings = settings;
    this.#saver = saver;
    this.#events = new RunEvents(settings.bus, settings.name, state.runId);
    const records = saver !== undefined && settings.maxSteps > 0;
    // With the mode "exit" nothing is saved inside nodes.
    const inside = settings.mode === "exit" ? undefined : saver;
    this.#visit = new Visit({ settings, saver: inside, control, records }, state);
  }

  /** Runs to an exit point. A new run is saved first, so that one that dies in its first node can be resumed. */
  async run(state: State<D>): Promise<State<D>> {
    const { bus } = this.#settings;
    const own = sinkOf(state);
    const ignore = abortWith(this.#control, this.#plan.signal);
    try {
      const heard = stateOf<D>(recordOf(state), own === undefined ? bus : both(own, bus));
      const last = await this.#walk(await this.#begin(heard));
      return stateOf(recordOf(last), own);
    } catch (error) {
      throw await this.#fail(error);
    } finally {
      ignore();
      this.#ended = true;
      this.#visit.close();
    }
  }

  /** The State that the running node received. */
  get state(): State<D> {
    return this.#visit.state;
  }

  /** Why an answer was refused in the last node that paused. */
  get refusal(): SchemaError | undefined {
    return this.#visit.worked?.refusal;
  }

  /**
   * Keeps an answer for a later pause. It is saved when the promise resolves.
   *
   * @returns `false` if the run stopped before it could be kept.
   * @throws ConfigError if there are too many.
   */
  async answer(answer: Answer): Promise<boolean> {
    const visit = this.#visit;
    if (this.#ended) return false;
    checkRoom(visit.runId, visit.answers);
    visit.addAnswer(answer);
    while (!this.#ended) {
      if (visit.run.saver === undefined && this.#lastAnswers === undefined) return true;
      const saving = visit.saveAnswers();
      await (saving ?? visit.next());
      if (saving !== undefined) return true;
    }
    return !visit.answers.includes(answer) || this.#lastAnswers?.includes(answer) === true;
  }

  async #begin(state: State<D>): Promise<State<D>> {
    const { entry, after, isResumed } = this.#plan;
    const { step } = state;
    this.#events.emit("graph.start", { entryPoint: entry.name, step, resumed: isResumed });
    const { nextNode, unfinished, steps } = progressOf(state);
    const isNew = after === undefined && unfinished === undefined;
    const first = withProgress(state, {
      status: "in_progress",
      error: undefined,
      ...(!isResumed && { reason: "start" }),
      nextNode: isNew ? entry.name : nextNode,
      steps: steps.withLimit(this.#settings.maxSteps),
    });
    return isResumed || this.#settings.mode === "exit" ? first : this.#save(first);
  }

  /** The one loop: everything that happens at a step happens here. */
  async #walk(start: State<D>): Promise<State<D>> {
    const { bus, reducers, validatesNodes, schema, maxIterations, mode, breakpoints } =
      this.#settings;
    const { isResumed, onValues } = this.#plan;
    const { gate } = this.#control;
    const control = this.#control;
    const saver = this.#saver;
    const visit = this.#visit;
    const events = this.#events;
    const checked = validatesNodes ? schema : undefined;
    const background = saver !== undefined && mode === "async";
    let state = start;
    let time = isoNow();
    const first = this.#firstNode(state);
    // Resumed with nothing left to do.
    if (first === END) return this.#saveEnd(state, completed);
    let node: GraphNode<D> = first;
    if (isResumed) {
      const { checkpointNode, step } = state;
      events.emit("checkpoint.resume", { node: checkpointNode, step, resumeNode: node.name });
    }
    let skipBreakpoint = this.#plan.skipBreakpoint;
    for (;;) {
      if (gate !== undefined) await gate.wait();
      // If the process was suspended, its clock shows that the claim has expired before a timer does.
      const checking = control.check();
      if (checking !== undefined) await checking;
      if (control.aborted) throw stopped(state, node.name, control.signal.reason);
      if (control.drains) throw aborted(state, node.name, DRAINS);
      if (background) saver.check(state);
      // First, so that a run that failed at a node has passed the breakpoint before it.
      if (breakpoints?.before?.includes(node.name) && !skipBreakpoint) {
        return this.#saveEnd(state, pausedAt(node.name, [breakpoint("before", node.name)]));
      }
      skipBreakpoint = false;
      if (state.step >= maxIterations) throw tooLong(state, node.name);
      this.#path.add(node.name);
      if (bus.active) events.nodeStarted(node.name, state, time);

      let result: State<D>;
      let pauses = noPauses;
      visit.begin(node.name, state, time);
      try {
        const context = new RunContext(visit, node.name, state.step, visit.first);
        const returned = node.run(state, context);
        let settled = isPromise(returned) ? await returned : returned;
        const base = visit.end(state);
        state = isPromise(base) ? await base : base;
        // Most nodes return a State, which is faster to test for than a Pause.
        if (!(settled instanceof State) && settled instanceof Pause) {
          if (saver === undefined) throw cannotPause(settled.request);
          pauses = Object.freeze([settled.request]);
          settled = settled.state;
        }
        result = accept(state, node.name, settled, reducers);
        if (checked !== undefined) await validated("data", result.data, checked);
        // What can't be saved must not count as done; everything else was validated when it came in.
        if (saver !== undefined) {
          const hasSymbol = result !== settled && symbolOf(settled) !== undefined;
          if (hasSymbol || isOpaque(result)) result.toJSON();
        }
      } catch (error) {
        return this.#incomplete(error, state, node);
      }

      const step = this.#completed(node, state, result, pauses);
      const { way } = step;
      state = step.state;
      const { status } = state;
      time = state.timestamp;
      if (status !== "in_progress") this.#lastAnswers = visit.answers;
      onValues?.(node.name, visit.state, state);
      if (step.due && saver !== undefined) {
        if (background && status === "in_progress") {
          saver.defer(state);
        } else {
          if (background) state = await saver.settled(state);
          try {
            state = saver.accept(state, await saver.put(state));
          } catch (error) {
            state = saver.refuse(state, error, status === "paused");
          }
          time = isoNow();
        }
      }
      if (status === "paused") return this.#finish(state);
      if (way !== undefined && bus.active) events.edgeChosen(node, way, time);
      if (way === undefined || way.to === END) return this.#finish(state);
      if (way.to === undefined) throw way.failure.at(state);
      node = way.to;
    }
  }

  /** The run's next State, once a node has returned. Kept apart from the loop, which V8 then compiles better. */
  #completed(
    node: GraphNode<D>,
    before: State<D>,
    result: State<D>,
    asked: readonly PauseRequest[],
  ): Step<D> {
    const { name, exit } = node;
    const { bus, interval, triggers, breakpoints } = this.#settings;
    const visit = this.#visit;
    const saver = this.#saver;
    const time = isoNow();
    const isHeard = bus.listens("node.complete");
    const isTimed = saver !== undefined || isHeard;
    const durationMs = isTimed ? msBetween(visit.startedAt, time) : 0;
    const isBreakpoint = asked.length === 0 && breakpoints?.after?.includes(name) === true;
    const pauses = isBreakpoint ? Object.freeze([breakpoint("after", name)]) : asked;
    const known = progressOf(before);
    const saves = saver !== undefined;
    const progress = advance(known, node, pauses, visit, time, durationMs, saves);
    const state = advanced(before, result, progress);
    if (isHeard) this.#events.nodeCompleted(state, durationMs, visit.ledgerBefore, time);
    // The edge is chosen before the save, so that the checkpoint records where a resume would continue.
    const way = exit ? undefined : chooseEdge(state, node);
    const to = way === undefined ? END : way.to;
    if (to !== END) progress.nextNode = to?.name;
    else if (pauses.length === 0) Object.assign(progress, completed);
    const isOver = progress.status !== "in_progress";
    // The end is always saved: only one of two writers that get here may clean up.
    let due = saver !== undefined && (isOver || progress.step % interval === 0);
    if (triggers.length > 0 && !isOver) {
      const input = { before, sinceSave: saver?.age ?? 0 };
      const reason = triggers.find((trigger) => isDue(trigger, state, input))?.reason;
      if (reason !== undefined) {
        due = true;
        progress.reason = reason;
      }
    }
    if (saver?.adaptive !== undefined) {
      const { costUsd } = progress.ledger.usage;
      const next = progress.nextNode;
      const isWorthIt = saver.adaptive.isDue({ name, next, durationMs, costUsd });
      if (isWorthIt && !due) {
        due = true;
        progress.reason = "adaptive" satisfies Reason;
      }
    }
    return { state, way, due };
  }

  /** Pauses the run in a node that did not complete, or throws the node's failure. */
  async #incomplete(error: unknown, { step }: State<D>, { name }: GraphNode<D>): Promise<State<D>> {
    const visit = this.#visit;
    const { signal } = this.#control;
    const { ledgerBefore, startedAt } = visit;
    const left = await visit.left(true);
    const { worked } = visit;
    if (worked?.failure !== undefined) throw worked.failure;
    // A node that requested a pause and got no answer pauses the run, whether it threw or returned.
    const asked = pausesOf(error, worked?.asked ?? noPauses);
    const [pause] = asked;
    if (signal.reason instanceof CheckpointConflictError) throw signal.reason;
    if (pause !== undefined && this.#saver !== undefined)
      return this.#saveEnd(left, pausedAt(name, asked), ledgerBefore);
    const cause = pause === undefined ? error : cannotPause(pause);
    const failure = isStop(cause, this.#control)
      ? aborted(left, name, cause)
      : nodeFailed(visit.failed(left), name, cause);
    this.#events.nodeFailed(failure, step, startedAt, [ledgerBefore, visit.ledger]);
    throw failure;
  }

  /** The node to run first; the end if a run that was paused at an exit point has got its input. */
  #firstNode(state: State<D>): GraphNode<D> | End {
    const { entry, after, unfinished } = this.#plan;
    if (unfinished !== undefined) return unfinished;
    if (after === undefined) return entry;
    if (after.exit) return END;
    const way = chooseEdge(state, after);
    this.#events.edgeChosen(after, way);
    if (way.to === undefined) throw way.failure;
    return way.to;
  }

  /** Pauses or completes the run where no node has completed. */
  async #saveEnd(state: State<D>, end: ProgressChanges, before?: Ledger): Promise<State<D>> {
    const last = this.#last(state, end);
    return this.#finish(await this.#save(last, end.status === "paused"), before);
  }

  /**
   * What is left of a run that has paused or completed, and is saved: the checkpoints of a completed one are removed,
   * unless they are preserved.
   *
   * @param before - the ledger as it was when the node that pauses began.
   */
  async #finish(state: State<D>, before = this.#visit.ledger): Promise<State<D>> {
    if (state.status === "paused") {
      this.#events.paused(state, before, this.#visit.ledger);
      return state;
    }
    const saver = this.#saver;
    const left = this.#settings.preserve || saver === undefined ? state : await saver.clean(state);
    const { checkpointNode: exitPoint, step } = state;
    this.#events.emit("graph.complete", { exitPoint, step });
    return left;
  }

  /** Ends the run early: saves a checkpoint to resume from, and returns the error to throw. */
  async #fail(error: unknown): Promise<unknown> {
    if (!(error instanceof Failure)) {
      this.#control.abort(error);
      this.#events.brokeOff(error, this.#saver?.latest);
      return error;
    }
    const failure = error as Failure<D>;
    const { code, node, state, message, cause } = failure;
    // An aborted run is saved even if nothing is new: otherwise a resume would take it for a crash.
    const isAborted = code === "ABORTED" && isReason(state.reason, "abort");
    const isSaved = isAborted && this.#saver?.has(state, this.#visit.answers);
    let last = state;
    if (!isSaved && code !== "CHECKPOINT_SAVE") {
      last = this.#last(state, failure.toProgress());
      try {
        last = await this.#save(last);
      } catch {
        // The caller must see the run's own error; an event reports that this save failed too.
      }
    }
    this.#events.emit("graph.fail", { node, step: last.step, code, error: message, cause });
    return failure.toError(last, this.#path.list());
  }

  /** The last State of a run that stops where no node has completed: answers that come later are saved separately. */
  #last(state: State<D>, end: ProgressChanges): State<D> {
    const { answers } = this.#visit;
    this.#lastAnswers = answers;
    return withProgress(state, { ...end, answers });
  }

  /** The State as saved, if the run is. */
  #save(state: State<D>, must = false): State<D> | Promise<State<D>> {
    return this.#saver?.save(state, must) ?? state;
  }
}

/** What the last State of a run says that has completed. */
const completed: ProgressChanges = {
  status: "completed",
  reason: "complete",
  nextNode: undefined,
};

/** What the last State of a run says that has paused before a node completed. */
function pausedAt(nextNode: string, pauses: readonly PauseRequest[]): ProgressChanges {
  return { status: "paused", reason: "pause", pauses: Object.freeze(pauses), nextNode };
}

const LIMIT = 100;

/** The names of the last nodes of a run: a ring buffer, because one is added at every step. */
export class Path {
  readonly #names = new Array<string>(LIMIT).fill("");
  #count = 0;

  add(name: string): void {
    this.#names[this.#count % LIMIT] = name;
    this.#count++;
  }

  list(): readonly string[] {
    const oldest = this.#count % LIMIT;
    return this.#count < LIMIT
      ? this.#names.slice(0, this.#count)
      : [...this.#names.slice(oldest), ...this.#names.slice(0, oldest)];
  }
}

/** Whether a value must be awaited. */
function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/** The error of a cancelled run. A run that another process holds now is not written to its store. */
function stopped<D extends object>(state: State<D>, node: string, reason: unknown): unknown {
  return reason instanceof CheckpointConflictError ? reason : aborted(state, node, reason);
}
