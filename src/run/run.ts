import { isoNow } from "../clock.js";
import { CheckpointConflictError, CheckpointSaveError, ExecutionError, show } from "../errors.js";
import { both, type EventMap, type EventType } from "../events.js";
import type { GraphNode, NodeResult } from "../graph/node.js";
import { isPlainObject } from "../state/own.js";
import { VisitCounts } from "../state/record.js";
import { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { RunContext } from "./context.js";
import { aborted, Failure, messageOf, nodeFailed, tooLong } from "./failure.js";
import { nextNode } from "./next.js";
import { Path } from "./path.js";
import type { Saver } from "./saver.js";

/** What a run needs of its graph. */
export interface Plan<D extends object> {
  readonly settings: Settings;
  readonly nodes: readonly GraphNode<D>[];
  readonly entry: GraphNode<D>;
  /** The node that the State says has completed; `undefined` starts at the entry point. */
  readonly after: GraphNode<D> | undefined;
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

  constructor(plan: Plan<D>, { runId, visits }: State<D>) {
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
    const abort = (): void => this.#controller.abort(signal?.reason);
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

  async #begin(state: State<D>, resumed: boolean): Promise<State<D>> {
    this.#emit("graph.start", { entryPoint: this.#plan.entry.name, step: state.step, resumed });
    const reason = resumed ? state.reason : "start";
    const first = State.progressed(state, { status: "in_progress", error: undefined, reason });
    return resumed || this.#plan.saver === undefined ? first : this.#plan.saver.save(first);
  }

  /** The one loop: whatever happens at each step, happens here. */
  async #walk(start: State<D>, resumed: boolean): Promise<State<D>> {
    const { bus, name: source, interval, preserve, maxIterations } = this.#settings;
    const { entry, after, saver } = this.#plan;
    const { signal } = this.#controller;
    const completed = this.#completed;
    let state = start;
    let node = after === undefined ? entry : nextNode(state, after, source, bus);
    if (resumed) {
      const { checkpointNode, step } = state;
      this.#emit("checkpoint.resume", { node: checkpointNode, step, resumeNode: node.name });
    }
    for (;;) {
      const { name, index, exit } = node;
      if (signal.aborted) throw aborted(state, name, signal.reason);
      if (state.step >= maxIterations) throw tooLong(state, name);
      this.#path.add(name);
      const visits = completed[index] ?? 0;
      if (visits > 0 && bus.listens("cycle.detected")) {
        this.#emit("cycle.detected", { node: name, visitCount: visits + 1, step: state.step });
      }
      if (bus.listens("node.start")) this.#emit("node.start", { node: name, step: state.step });

      let result: State<D>;
      try {
        const context = new RunContext(signal, this.#runId, name, state.step, bus, source);
        const returned = node.run(state, context);
        result = accept(state, name, isPromise(returned) ? await returned : returned);
        // What can't be saved must not count as done; all else was settled when it came in.
        if (saver !== undefined && State.isOpaque(result)) result.toJSON();
      } catch (error) {
        const failure = nodeFailed(state, name, error, signal);
        this.#emit("node.complete", { node: name, step: state.step, error: failure.message });
        throw failure;
      }

      const step = state.step + 1;
      const due = saver !== undefined && (step % interval === 0 || (exit && preserve));
      completed[index] = visits + 1;
      state = State.advance(state, result, {
        checkpointNode: name,
        timestamp: isoNow(),
        step,
        status: exit ? "completed" : "in_progress",
        error: undefined,
        reason: exit ? "complete" : "interval",
        visits: due || exit ? this.#visits() : state.visitCounts,
      });
      if (bus.listens("node.complete")) this.#emit("node.complete", { node: name, step });
      if (due) state = await saver.save(state);
      if (exit) return this.#complete(state);
      node = nextNode(state, node, source, bus);
    }
  }

  async #complete(state: State<D>): Promise<State<D>> {
    if (!this.#settings.preserve) await this.#plan.saver?.clean(state);
    this.#emit("graph.complete", { exitPoint: state.checkpointNode, step: state.step });
    return state;
  }

  /** The run ended early: leaves a checkpoint to resume from, and gives the error to throw. */
  async #end(error: unknown): Promise<unknown> {
    if (!(error instanceof Failure)) {
      if (error instanceof CheckpointConflictError) this.#controller.abort(error);
      const { checkpointNode = "", step = 0 } = this.#plan.saver?.latest ?? {};
      const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
      this.#emit("graph.fail", { node: checkpointNode, step, code, error: messageOf(error) });
      return error;
    }
    const { code, node, message, cause } = error;
    const state = await this.#leave(error as Failure<D>);
    const options = { nodeName: node, state, path: this.#path.list(), cause };
    this.#emit("graph.fail", { node, step: state.step, code, error: message });
    return code === "CHECKPOINT_SAVE"
      ? new CheckpointSaveError(message, options)
      : new ExecutionError(code, message, options);
  }

  /** Saves what a failed run knew: as failed, or, if it was only cancelled, as still going on. */
  async #leave({ state, code, node, cause, message }: Failure<D>): Promise<State<D>> {
    const { saver } = this.#plan;
    const cancelled = code === "ABORTED";
    if (code === "CHECKPOINT_SAVE" || (cancelled && state === saver?.latest)) return state;
    const name = cause instanceof Error ? cause.name : "ExecutionError";
    const error = { name, message: cause === undefined ? message : messageOf(cause), node };
    const left = State.progressed(state, {
      status: cancelled ? "in_progress" : "failed",
      error: cancelled ? undefined : Object.freeze(error),
      reason: cancelled ? "abort" : "failure",
      visits: this.#visits(),
    });
    // The run's own error is what the caller must see; an event tells that this save failed too.
    return saver?.save(left).catch(() => left) ?? left;
  }

  #visits(): VisitCounts {
    return new VisitCounts(this.#names, this.#completed.slice());
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#runId, data);
  }
}

function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | undefined)?.then === "function";
}

/** What a node returned, as the run's State. */
function accept<D extends object>(
  state: State<D>,
  node: string,
  returned: NodeResult<D>,
): State<D> {
  if (returned instanceof State) {
    if (returned.runId === state.runId) return returned;
    const problem = `returned the State of run ${show(returned.runId)}: build on the State it is given`;
    throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
  }
  if (typeof returned === "object" && returned !== null && isPlainObject(returned)) {
    return state.merge(returned);
  }
  const problem = `wants to return a State or a plain object to merge, got ${show(returned)}`;
  throw new Failure("NODE_RESULT", node, state, `node ${show(node)} ${problem}`);
}
