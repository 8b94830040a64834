import { isoNow, msBetween } from "../clock.js";
import { onAbort } from "../concurrency.js";
import { CheckpointConflictError, type SchemaError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import { both, type EventType } from "../events.js";
import { END, type End, type GraphNode } from "../graph/node.js";
import { Pause } from "../graph/pause.js";
import { isOpaque, progressOf, withProgress } from "../state/derive.js";
import { type Answer, noPauses } from "../state/record.js";
import { validated } from "../state/schema.js";
import { symbolOf } from "../state/shape.js";
import { recordOf, State, sinkOf, stateOf } from "../state/state.js";
import { checkRoom } from "./answers.js";
import type { RunClaim } from "./claim.js";
import type { Settings } from "./config.js";
import { RunContext } from "./context.js";
import { Ending } from "./ending.js";
import { aborted, DRAINS, Failure, isStop, nodeFailed, tooLong } from "./failure.js";
import { emitChoice, nextNode } from "./next.js";
import { Path } from "./path.js";
import { breakpoint, cannotPause, pausesOf } from "./pauses.js";
import { accept, isPromise } from "./result.js";
import type { Saver } from "./saver.js";
import { StepRecorder, withUsage } from "./step-recorder.js";
import type { Gate } from "./stream.js";
import { Tally } from "./tally.js";
import { Visit } from "./visit.js";

/** What a run needs from its graph. */
export interface Plan<D extends object> {
  readonly settings: Settings;
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D>;
  /** The claim under which the run is worked on; checked before each node, attempt and `once`. */
  readonly claim?: RunClaim | undefined;
  /** The last completed node of the State; `undefined` starts at the entry point. */
  readonly after: GraphNode<D> | undefined;
  /** The node that a resumed run was inside. */
  readonly unfinished?: GraphNode<D> | undefined;
  /** Whether the run has already stopped at the breakpoint before its first node. */
  readonly skipBreakpoint?: boolean;
  /** Awaited before each node, for a reader of events that is slower than the run. */
  readonly gate?: Gate | undefined;
  /** Receives what each node has changed. */
  readonly onValues?: ValuesListener<D> | undefined;
  /** `undefined` if nothing is saved. */
  readonly saver: Saver<D> | undefined;
}

/** Called after each completed node with the States before and after it. */
export type ValuesListener<D extends object> = (
  node: string,
  before: State<D>,
  after: State<D>,
) => void;

/** One run of a graph, from its entry point or from a checkpoint, to an exit point or an error. */
export class Run<D extends object> {
  readonly #plan: Plan<D>;
  readonly #settings: Settings;
  readonly #runId: string;
  readonly #controller = new AbortController();
  readonly #path = new Path();
  readonly #tally: Tally;
  readonly #visit: Visit<D>;
  readonly #recorder: StepRecorder<D>;
  readonly #ending: Ending<D>;
  readonly #pausesBefore: ReadonlySet<string> | undefined;
  #draining = false;
  /** A copy of `signal.aborted`, which is too slow to read at every step. */
  #aborted = false;
  #ended = false;

  constructor(plan: Plan<D>, state: State<D>) {
    const { settings, saver } = plan;
    const { before } = settings.breakpoints ?? {};
    this.#pausesBefore = before && new Set(before);
    this.#plan = plan;
    this.#settings = settings;
    this.#runId = state.runId;
    this.#tally = new Tally(progressOf(state).counts);
    this.#visit = new Visit(
      settings,
      settings.mode === "exit" ? undefined : saver,
      state,
      saver !== undefined && settings.maxSteps > 0,
      () => this.#tally.counts(),
      (error) => this.#abort(error),
      plan.claim,
    );
    this.#recorder = new StepRecorder(settings, saver, this.#visit, this.#tally);
    this.#ending = new Ending(settings, saver, this.#visit, this.#tally);
    // The node that runs during the save need not finish: its result can't be saved.
    if (saver !== undefined) saver.onConflict = (error) => this.lose(error);
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
    const ignore = signal && onAbort(signal, abort);
    try {
      const heard = stateOf<D>(recordOf(state), own === undefined ? bus : both(own, bus));
      const last = await this.#walk(await this.#begin(heard, resumed), resumed);
      return stateOf(recordOf(last), own);
    } catch (error) {
      throw await this.#end(error);
    } finally {
      ignore?.();
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
    return this.#visit.refusal;
  }

  /** Stops the run as soon as possible, so that it can be resumed. */
  cancel(reason: unknown): void {
    this.#abort(reason);
    this.#plan.gate?.open();
  }

  /**
   * Keeps an answer for a later pause. It is saved when the promise resolves.
   *
   * @returns `false` if the run stopped before it could be kept.
   * @throws ConfigError if there are too many.
   */
  async answer(answer: Answer): Promise<boolean> {
    if (this.#ended) return false;
    checkRoom(this.#runId, this.#visit.answers);
    this.#visit.addAnswer(answer);
    const isSaved = this.#plan.saver !== undefined && this.#settings.mode !== "exit";
    while (!this.#ended) {
      if (!isSaved && this.#ending.lastAnswers === undefined) return true;
      const saving = this.#visit.saveAnswers();
      await (saving ?? this.#visit.next());
      if (saving !== undefined) return true;
    }
    return !this.#visit.hasAnswer(answer) || this.#ending.lastAnswers?.includes(answer) === true;
  }

  /** Ends the run without another write to its store: another process holds it. */
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

  /** The one loop: everything that happens at a step happens here. */
  async #walk(start: State<D>, resumed: boolean): Promise<State<D>> {
    const { bus, name: source, reducers } = this.#settings;
    const { saver, gate, claim, onValues } = this.#plan;
    const { signal } = this.#controller;
    const visit = this.#visit;
    const ending = this.#ending;
    const checksNodes = this.#settings.validatesNodes ? this.#settings.schema : undefined;
    const background = saver?.inBackground === true;
    let state = start;
    let time = isoNow();
    const first = this.#firstNode(state);
    if (first === END) return ending.finish(state);
    let node: GraphNode<D> = first;
    if (resumed) {
      const { checkpointNode, step } = state;
      this.#emit("checkpoint.resume", { node: checkpointNode, step, resumeNode: node.name });
    }
    let skipBreakpoint = this.#plan.skipBreakpoint;
    for (;;) {
      if (gate !== undefined) await gate.wait();
      // If the process was suspended, its clock shows that the claim has expired before a timer does.
      const checking = claim?.check();
      if (checking !== undefined) await checking;
      this.#check(state, node);
      // First, so that a run that failed at a node has passed the breakpoint before it.
      if (this.#pausesBefore?.has(node.name) && !skipBreakpoint) {
        return ending.pause(state, node.name, [breakpoint("before", node.name)]);
      }
      skipBreakpoint = false;
      this.#enter(state, node, time);

      let result: State<D>;
      let pauses = noPauses;
      visit.begin(node.name, state, time);
      try {
        const context = new RunContext(visit, signal, node.name, state.step, 1);
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
        if (checksNodes !== undefined) await validated("data", result.data, checksNodes);
        // What can't be saved must not count as done; everything else was validated when it came in.
        if (saver !== undefined) {
          const hasSymbol = result !== settled && symbolOf(settled) !== undefined;
          if (hasSymbol || isOpaque(result)) result.toJSON();
        }
      } catch (error) {
        return this.#failed(error, state, node, time);
      }

      const step = this.#recorder.record(node, state, result, pauses, time);
      const { way, ends, paused } = step;
      state = step.state;
      time = state.timestamp;
      if (ends || paused) ending.seal();
      onValues?.(node.name, visit.state, state);
      if (step.due && saver !== undefined) {
        if (background && !ends && !paused) {
          saver.defer(state);
        } else {
          if (background) state = await saver.settled(state);
          try {
            state = saver.accept(state, await saver.put(state));
          } catch (error) {
            state = saver.refuse(state, error, paused);
          }
          time = isoNow();
        }
      }
      if (paused) return ending.paused(state);
      if (way !== undefined) emitChoice(state, node, way, source, bus, time);
      if (ends) return ending.complete(state);
      // No edge was taken before the save; the problem with the edges is found again, and thrown.
      const next: GraphNode<D> | End = way?.to ?? nextNode(state, node, source, bus, time);
      if (next === END) return ending.finish(state);
      node = next;
    }
  }

  /** Throws if the run must not begin this node. */
  #check(state: State<D>, { name }: GraphNode<D>): void {
    const { saver } = this.#plan;
    if (this.#aborted) throw stopped(state, name, this.#controller.signal.reason);
    if (this.#draining) throw aborted(state, name, DRAINS);
    if (saver?.inBackground) saver.check(state);
  }

  /** Notes that a node begins. */
  #enter(state: State<D>, { name }: GraphNode<D>, time: string): void {
    const { bus, name: source, maxIterations } = this.#settings;
    const { step } = state;
    if (step >= maxIterations) throw tooLong(state, name);
    this.#path.add(name);
    if (bus.listens("cycle.detected")) {
      const visitCount = this.#tally.visits(name) + 1;
      if (visitCount > 1) {
        bus.emit("cycle.detected", source, this.#runId, { node: name, visitCount, step }, time);
      }
    }
    if (bus.listens("node.start")) {
      bus.emit("node.start", source, this.#runId, { node: name, step }, time);
    }
  }

  /** Handles a node that did not complete: returns the State of a run that pauses in it, or throws its error. */
  async #failed(
    error: unknown,
    { step }: State<D>,
    { name }: GraphNode<D>,
    startedAt: string,
  ): Promise<State<D>> {
    const visit = this.#visit;
    const { signal } = this.#controller;
    const { saver } = this.#plan;
    const { ledgerBefore } = visit;
    const left = await visit.fail();
    if (visit.failure !== undefined) throw visit.failure;
    // A node that requested a pause and got no answer pauses the run, whether it threw or returned.
    const asked = pausesOf(error, visit.asked);
    const [pause] = asked;
    if (signal.reason instanceof CheckpointConflictError) throw signal.reason;
    if (pause !== undefined && saver !== undefined)
      return this.#ending.pause(left, name, asked, ledgerBefore);
    const cause = pause === undefined ? error : cannotPause(pause);
    const stop = { signal, draining: visit.draining };
    const from = isStop(cause, stop) ? left : visit.failed(left);
    const failure = nodeFailed(from, name, cause, stop);
    const data = {
      node: name,
      step,
      durationMs: msBetween(startedAt, isoNow()),
      error: failure.message,
      cause,
    };
    this.#emit("node.complete", withUsage(data, ledgerBefore, visit.ledger));
    throw failure;
  }

  /** The node to run first; the end if a run that was paused at an exit point has got its input. */
  #firstNode(state: State<D>): GraphNode<D> | End {
    const { entry, after, unfinished } = this.#plan;
    if (unfinished !== undefined) return unfinished;
    if (after?.exit) return END;
    return after === undefined
      ? entry
      : nextNode(state, after, this.#settings.name, this.#settings.bus);
  }

  /** Ends the run early; returns the error to throw. */
  async #end(error: unknown): Promise<unknown> {
    if (error instanceof Failure) {
      const abort = (conflict: unknown): void => this.#abort(conflict);
      return this.#ending.fail(error as Failure<D>, this.#path.list(), abort);
    }
    this.#abort(error);
    this.#ending.breakOff(error);
    return error;
  }

  #abort(reason: unknown): void {
    this.#aborted = true;
    this.#controller.abort(reason);
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#runId, data);
  }
}

/** The error of a cancelled run. A run that another process holds now is not written to its store. */
function stopped<D extends object>(state: State<D>, node: string, reason: unknown): unknown {
  return reason instanceof CheckpointConflictError ? reason : aborted(state, node, reason);
}
