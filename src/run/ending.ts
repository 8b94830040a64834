import { CheckpointConflictError, messageOf } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import { progressOf, withProgress } from "../state/derive.js";
import type { Ledger } from "../state/ledger.js";
import type { PauseRequest, Signal } from "../state/record.js";
import type { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { bounded, type Failure, nameOf, stackOf } from "./failure.js";
import type { Saver } from "./saver.js";
import { withUsage } from "./step-recorder.js";
import type { Tally } from "./tally.js";
import type { Visit } from "./visit.js";

/** How a run stops: at its end, in a pause or by an error. What it leaves is saved and emitted here. */
export class Ending<D extends object> {
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #visit: Visit<D>;
  readonly #tally: Tally;
  #lastSignals: readonly Signal[] | undefined;

  constructor(settings: Settings, saver: Saver<D> | undefined, visit: Visit<D>, tally: Tally) {
    this.#settings = settings;
    this.#saver = saver;
    this.#visit = visit;
    this.#tally = tally;
  }

  /** The signals that the run's last save carries, once it is clear which save that is. */
  get lastSignals(): readonly Signal[] | undefined {
    return this.#lastSignals;
  }

  /** The next save is the run's last; a signal that comes later is kept some other way. */
  seal(): readonly Signal[] {
    this.#lastSignals = this.#visit.signals;
    return this.#lastSignals;
  }

  /** Pauses before the current node completes; `before` is what was used when it began. */
  async pause(
    state: State<D>,
    nextNode: string,
    pauses: readonly PauseRequest[],
    before?: Ledger,
  ): Promise<State<D>> {
    const paused = withProgress(state, {
      status: "paused",
      reason: "pause",
      pauses: Object.freeze(pauses),
      signals: this.seal(),
      counts: this.#tally.counts(),
      nextNode,
    });
    return this.paused((await this.#saver?.save(paused, true)) ?? paused, before);
  }

  /** The run has paused, and is saved. */
  paused(state: State<D>, before = this.#visit.ledger): State<D> {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    const data = { node, step: state.step, reason };
    this.#emit("graph.pause", withUsage(data, before, this.#visit.ledger));
    return state;
  }

  /** Ends a run that no node ended: it was resumed where nothing is left to do. */
  async finish(state: State<D>): Promise<State<D>> {
    const end = { status: "completed", reason: "complete", nextNode: undefined } as const;
    const done = withProgress(state, { ...end, signals: this.seal() });
    return this.complete((await this.#saver?.save(done)) ?? done);
  }

  /** The run is at its end, and is saved. */
  async complete(state: State<D>): Promise<State<D>> {
    const saver = this.#saver;
    const left = this.#settings.preserve || saver === undefined ? state : await saver.clean(state);
    this.#emit("graph.complete", { exitPoint: state.checkpointNode, step: state.step });
    return left;
  }

  /** The run broke off, with an error that is not a step's own. */
  breakOff(error: unknown): void {
    const { checkpointNode: node = "", step = 0 } = this.#saver?.latest ?? {};
    const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
    this.#emit("graph.fail", { node, step, code, error: messageOf(error), cause: error });
  }

  /**
   * Leaves a checkpoint to resume from, and gives the error to throw.
   *
   * @param conflicts - is called if another process has the run.
   */
  async fail(
    failure: Failure<D>,
    path: readonly string[],
    conflicts: (error: CheckpointConflictError) => void,
  ): Promise<unknown> {
    const { code, node, message, cause } = failure;
    const state = await this.#leave(failure, conflicts);
    this.#emit("graph.fail", { node, step: state.step, code, error: message, cause });
    return failure.toError(state, path);
  }

  /** Saves what a failed run knew: as failed, or, if it was only cancelled, as still in progress. */
  async #leave(
    { state, code, node, cause, message }: Failure<D>,
    conflicts: (error: CheckpointConflictError) => void,
  ): Promise<State<D>> {
    const cancelled = code === "ABORTED";
    if (code === "CHECKPOINT_SAVE") return state;
    // Saved even if nothing is new: else a resume would take it for a crash.
    if (cancelled && state.reason === "abort" && this.#isSaved(state)) return state;
    const error =
      cause === undefined
        ? { name: "ExecutionError", message: bounded(message), node }
        : { name: nameOf(cause), message: bounded(messageOf(cause)), node, ...stackOf(cause) };
    // Where no edge matched, a resume looks at the edges again.
    const isAtEdge = code === "NO_MATCHING_EDGE" || code === "PREDICATE_FAILED";
    const left = withProgress(state, {
      status: cancelled ? "in_progress" : "failed",
      error: cancelled ? undefined : Object.freeze(error),
      reason: cancelled ? "abort" : "failure",
      counts: this.#tally.counts(),
      signals: this.seal(),
      nextNode: isAtEdge ? undefined : node,
    });
    // The run's own error is what the caller must see; an event says that this save failed too.
    const unsaved = (error: unknown): State<D> => {
      if (error instanceof CheckpointConflictError) conflicts(error);
      return left;
    };
    return this.#saver?.save(left).catch(unsaved) ?? left;
  }

  /** Whether the store has all that a State of this run has, and every signal. */
  #isSaved(state: State<D>): boolean {
    const saver = this.#saver;
    if (saver?.latest === undefined || !saver.has(state)) return false;
    return progressOf(saver.latest).signals === this.#visit.signals;
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#visit.runId, data);
  }
}
