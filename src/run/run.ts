import { isoNow, lastNow, now } from "../clock.js";
import { CheckpointConflictError } from "../errors.js";
import type { EventMap } from "../event-map.js";
import { both, type EventType } from "../events.js";
import type { GraphNode } from "../graph/node.js";
import { Pause } from "../graph/pause.js";
import type { Ledger } from "../state/ledger.js";
import { noPauses, type PauseRequest, type Recovery, VisitCounts } from "../state/record.js";
import { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { RunContext } from "./context.js";
import { aborted, DRAINS, Failure, messageOf, nameOf, nodeFailed, tooLong } from "./failure.js";
import { nextNode } from "./next.js";
import { Path } from "./path.js";
import { breakpoint, cannotPause, pausesOf } from "./pauses.js";
import { accept, isPromise } from "./result.js";
import type { Saver } from "./saver.js";
import type { Gate } from "./stream.js";
import { isDue } from "./triggers.js";
import { Visit } from "./visit.js";

/** What a run needs of its graph. */
export interface Plan<D extends object> {
  readonly settings: Settings;
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D>;
  /** The node that the State says has completed; `undefined` starts at the entry point. */
  readonly after: GraphNode<D> | undefined;
  /** The node that a resumed run was in the middle of. */
  readonly unfinished?: GraphNode<D> | undefined;
  /** Whether the run has stopped before its first node already. */
  readonly skipBreakpoint?: boolean;
  /** Is awaited before each node, for a reader of events who is slower than the run. */
  readonly gate?: Gate | undefined;
  /** `undefined` when nothing is saved. */
  readonly saver: Saver<D> | undefined;
}

/** One walk of a graph, from its entry point or from a checkpoint, to an exit point or an error. */
export class Run<D extends object> {
  readonly #plan: Plan<D>;
  readonly #settings: Settings;
  readonly #runId: string;
  readonly #controller = new AbortController();
  readonly #path = new Path();
  readonly #names: readonly string[];
  /** How often each node completed, in the order of the names. */
  readonly #completed: number[];
  readonly #visit: Visit<D>;
  readonly #before: ReadonlySet<string> | undefined;
  readonly #after: ReadonlySet<string> | undefined;
  #draining = false;
  /** What `signal.aborted` says, which asks more of an AbortSignal than a step can afford. */
  #aborted = false;

  constructor(plan: Plan<D>, state: State<D>) {
    const { runId, visits } = state;
    const { before, after } = plan.settings.breakpoints ?? {};
    this.#before = before && new Set(before);
    this.#after = after && new Set(after);
    this.#visit = new Visit(
      plan.settings,
      plan.saver,
      state,
      () => this.#visits(),
      (error) => this.#abort(error),
    );
    this.#plan = plan;
    this.#settings = plan.settings;
    this.#runId = runId;
    this.#names = plan.nodes.map((node) => node.name);
    this.#completed = this.#names.map(
      (name) => (Object.hasOwn(visits, name) ? visits[name] : 0) ?? 0,
    );
  }

  /** Runs to an exit point. A new run is saved first, so that one that dies in its first node can be resumed. */
  async go(state: State<D>, resumed: boolean, signal: AbortSignal | undefined): Promise<State<D>> {
    const { bus } = this.#settings;
    const own = State.sinkOf(state);
    const abort = (): void => {
      this.#abort(signal?.reason);
      this.#plan.gate?.open();
    };
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort);
    try {
      const told = State.tellTo(state, own === undefined ? bus : both(own, bus));
      return State.tellTo(await this.#walk(await this.#begin(told, resumed), resumed), own);
    } catch (error) {
      throw await this.#end(error);
    } finally {
      signal?.removeEventListener("abort", abort);
    }
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
    const first = State.progressed(state, { status: "in_progress", error: undefined, reason });
    return resumed || this.#plan.saver === undefined ? first : this.#plan.saver.save(first);
  }

  /** The one loop: whatever happens at each step, happens here. */
  async #walk(start: State<D>, resumed: boolean): Promise<State<D>> {
    const { bus, name: source, interval, maxIterations, triggers } = this.#settings;
    const { saver, gate } = this.#plan;
    const { signal } = this.#controller;
    const completed = this.#completed;
    const visit = this.#visit;
    let state = start;
    let time = isoNow();
    let started = lastNow();
    let node = this.#firstNode(state);
    if (node === undefined) return this.#finish(state);
    if (resumed) {
      const { checkpointNode, step } = state;
      this.#emit("checkpoint.resume", { node: checkpointNode, step, resumeNode: node.name });
    }
    let skipBreakpoint = this.#plan.skipBreakpoint;
    for (;;) {
      const { name, index, exit } = node;
      if (gate !== undefined) await gate.wait();
      if (this.#aborted) throw aborted(state, name, signal.reason);
      if (this.#draining) throw aborted(state, name, DRAINS);
      if (state.step >= maxIterations) throw tooLong(state, name);
      if (this.#before?.has(name) && !skipBreakpoint) {
        return this.#pause(state, [breakpoint("before", name)]);
      }
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
      let result: State<D>;
      let pauses = noPauses;
      visit.begin(name, state);
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
        result = accept(state, name, settled);
        // What can't be saved must not count as done; all else was settled when it came in.
        if (saver !== undefined && State.isOpaque(result)) result.toJSON();
      } catch (error) {
        const left = await visit.fail();
        if (visit.failure !== undefined) throw visit.failure;
        // A node that asked for a pause and got no answer pauses the run, however it took that.
        const asked = pausesOf(error, visit.asked);
        const [pause] = asked;
        if (pause !== undefined && saver !== undefined) return this.#pause(left, asked, ledger);
        const cause = pause === undefined ? error : cannotPause(pause);
        const failure = nodeFailed(left, name, cause, { signal, draining: visit.draining });
        const data = {
          node: name,
          step: state.step,
          durationMs: now() - started,
          error: failure.message,
        };
        this.#emit("node.complete", withUsage(data, ledger, visit.ledger));
        throw failure;
      }

      const before = state;
      const step = state.step + 1;
      time = isoNow();
      const durationMs = lastNow() - started;
      started = lastNow();
      completed[index] = visits + 1;
      if (pauses.length === 0 && this.#after?.has(name))
        pauses = Object.freeze([breakpoint("after", name)]);
      const paused = pauses.length > 0;
      // An exit is always saved: of two writers who get here, only one may clean up.
      let due = saver !== undefined && (step % interval === 0 || exit || paused);
      state = State.advance(state, result, {
        checkpointNode: name,
        timestamp: time,
        step,
        status: paused ? "paused" : exit ? "completed" : "in_progress",
        error: undefined,
        reason: paused ? "pause" : exit ? "complete" : "interval",
        visits: due || exit ? this.#visits() : state.visitCounts,
        pauses,
        unfinished: undefined,
        ledger: visit.ledger,
        recovery: recoveryAfter(step, state.recovery),
      });
      if (timed) {
        const data = { node: name, step, durationMs };
        bus.emit("node.complete", source, this.#runId, withUsage(data, ledger, visit.ledger), time);
      }
      if (triggers.length > 0 && !paused && !exit) {
        const reason = this.#triggered(state, before);
        if (reason !== undefined) {
          due = true;
          state = State.progressed(state, { reason, visits: this.#visits() });
        }
      }
      if (due && saver !== undefined) {
        try {
          state = saver.accept(state, await saver.put(state));
        } catch (error) {
          state = saver.refuse(state, error, paused);
        }
        if (bus.active) time = isoNow();
        started = lastNow();
      }
      if (paused) return this.#paused(state);
      if (exit) return this.#complete(state);
      node = nextNode(state, node, source, bus, time);
    }
  }

  /** The reason of the first trigger that wants a State saved. */
  #triggered(state: State<D>, before: State<D>): string | undefined {
    const sinceSave = this.#plan.saver?.age ?? 0;
    const { triggers } = this.#settings;
    return triggers.find((trigger) => isDue(trigger, state, { before, sinceSave }))?.reason;
  }

  /** The node to run first; none when a run that was paused at an exit point has got its input. */
  #firstNode(state: State<D>): GraphNode<D> | undefined {
    const { entry, after, unfinished } = this.#plan;
    if (unfinished !== undefined) return unfinished;
    if (after?.exit) return undefined;
    return after === undefined
      ? entry
      : nextNode(state, after, this.#settings.name, this.#settings.bus);
  }

  /** Pauses before the current node completes; `before` is what was used when it began. */
  async #pause(
    state: State<D>,
    pauses: readonly PauseRequest[],
    before?: Ledger,
  ): Promise<State<D>> {
    const visits = this.#visits();
    const paused = State.progressed(state, {
      status: "paused",
      reason: "pause",
      pauses: Object.freeze(pauses),
      visits,
    });
    return this.#paused((await this.#plan.saver?.save(paused, true)) ?? paused, before);
  }

  #paused(state: State<D>, before = this.#visit.ledger): State<D> {
    const node = state.unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    const data = { node, step: state.step, reason };
    this.#emit("graph.pause", withUsage(data, before, this.#visit.ledger));
    return state;
  }

  async #finish(state: State<D>): Promise<State<D>> {
    const done = State.progressed(state, { status: "completed", reason: "complete" });
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
      this.#emit("graph.fail", { node: checkpointNode, step, code, error: messageOf(error) });
      return error;
    }
    const { code, node, message } = error;
    const state = await this.#leave(error as Failure<D>);
    this.#emit("graph.fail", { node, step: state.step, code, error: message });
    return error.toError(state, this.#path.list());
  }

  /** Saves what a failed run knew: as failed, or, if it was only cancelled, as still going on. */
  async #leave({ state, code, node, cause, message }: Failure<D>): Promise<State<D>> {
    const { saver } = this.#plan;
    const cancelled = code === "ABORTED";
    if (code === "CHECKPOINT_SAVE" || (cancelled && saver?.has(state))) return state;
    const error =
      cause === undefined
        ? { name: "ExecutionError", message, node }
        : { name: nameOf(cause), message: messageOf(cause), node };
    const left = State.progressed(state, {
      status: cancelled ? "in_progress" : "failed",
      error: cancelled ? undefined : Object.freeze(error),
      reason: cancelled ? "abort" : "failure",
      visits: this.#visits(),
    });
    // The run's own error is what the caller must see; an event tells that this save failed too.
    const unsaved = (error: unknown): State<D> => {
      if (error instanceof CheckpointConflictError) this.#abort(error);
      return left;
    };
    return saver?.save(left).catch(unsaved) ?? left;
  }

  #abort(reason: unknown): void {
    this.#aborted = true;
    this.#controller.abort(reason);
  }

  #visits(): VisitCounts {
    return new VisitCounts(this.#names, this.#completed.slice());
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#runId, data);
  }
}

/** What a run that has come to this step still knows of its recoveries: nothing, once it is further than ever. */
function recoveryAfter(step: number, recovery: Recovery | undefined): Recovery | undefined {
  return recovery === undefined || step > recovery.step ? undefined : recovery;
}

function withUsage<T extends object>(data: T, before: Ledger, after: Ledger): T {
  const usage = after.usageSince(before);
  return usage === undefined ? data : { ...data, usage };
}
