import { CheckpointConflictError, messageOf } from "../errors.js";
import type { EventMap } from "../event-map.js";
import type { EventType } from "../events.js";
import { progressOf, withProgress } from "../state/derive.js";
import type { Ledger } from "../state/ledger.js";
import type { Answer, PauseRequest } from "../state/record.js";
import type { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { bounded, type Failure, nameOf, stackOf } from "./failure.js";
import type { Saver } from "./saver.js";
import { withUsage } from "./step-recorder.js";
import type { Tally } from "./tally.js";
import type { Visit } from "./visit.js";

/** Stops a run at its end, in a pause or with an error: saves its last State and emits the event. */
export class Ending<D extends object> {
  readonly #settings: Settings;
  readonly #saver: Saver<D> | undefined;
  readonly #visit: Visit<D>;
  readonly #tally: Tally;
  #lastAnswers: readonly Answer[] | undefined;

  constructor(settings: Settings, saver: Saver<D> | undefined, visit: Visit<D>, tally: Tally) {
    this.#settings = settings;
    this.#saver = saver;
    this.#visit = visit;
    this.#tally = tally;
  }

  /** The answers in the run's last save, once it is known which save that is. */
  get lastAnswers(): readonly Answer[] | undefined {
    return this.#lastAnswers;
  }

  /** Declares the next save to be the run's last; later answers are saved separately. */
  seal(): readonly Answer[] {
    this.#lastAnswers = this.#visit.answers;
    return this.#lastAnswers;
  }

  /** Pauses before the current node completes; `before` is the ledger from when it began. */
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
      answers: this.seal(),
      counts: this.#tally.counts(),
      nextNode,
    });
    return this.paused((await this.#saver?.save(paused, true)) ?? paused, before);
  }

  /** Emits that the saved run has paused. */
  paused(state: State<D>, before = this.#visit.ledger): State<D> {
    const node = progressOf(state).unfinished?.node ?? state.checkpointNode;
    const reason = state.pauses.map((pause) => pause.reason).join(", ");
    const data = { node, step: state.step, reason };
    this.#emit("graph.pause", withUsage(data, before, this.#visit.ledger));
    return state;
  }

  /** Completes a run that was resumed with nothing left to do. */
  async finish(state: State<D>): Promise<State<D>> {
    const end = { status: "completed", reason: "complete", nextNode: undefined } as const;
    const done = withProgress(state, { ...end, answers: this.seal() });
    return this.complete((await this.#saver?.save(done)) ?? done);
  }

  /** Emits that the saved run has completed, and removes its checkpoints unless they are preserved. */
  async complete(state: State<D>): Promise<State<D>> {
    const saver = this.#saver;
    const left = this.#settings.preserve || saver === undefined ? state : await saver.clean(state);
    this.#emit("graph.complete", { exitPoint: state.checkpointNode, step: state.step });
    return left;
  }

  /** Emits that the run ended with an error other than a node's. */
  breakOff(error: unknown): void {
    const { checkpointNode: node = "", step = 0 } = this.#saver?.latest ?? {};
    const code = error instanceof CheckpointConflictError ? error.code : "NODE_FAILED";
    this.#emit("graph.fail", { node, step, code, error: messageOf(error), cause: error });
  }

  /**
   * Saves a checkpoint to resume from, and returns the error to throw.
   *
   * @param conflicts - called if another process has the run.
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

  /** Saves a run that ended early: as failed or, if it was only cancelled, as in progress. */
  async #leave(
    { state, code, node, cause, message }: Failure<D>,
    conflicts: (error: CheckpointConflictError) => void,
  ): Promise<State<D>> {
    const cancelled = code === "ABORTED";
    if (code === "CHECKPOINT_SAVE") return state;
    // Saved even if nothing is new: otherwise a resume would take it for a crash.
    if (cancelled && state.reason === "abort" && this.#isSaved(state)) return state;
    const error =
      cause === undefined
        ? { name: "ExecutionError", message: bounded(message), node }
        : { name: nameOf(cause), message: bounded(messageOf(cause)), node, ...stackOf(cause) };
    // If no edge matched, a resume evaluates the edges again.
    const isAtEdge = code === "NO_MATCHING_EDGE" || code === "PREDICATE_FAILED";
    const left = withProgress(state, {
      status: cancelled ? "in_progress" : "failed",
      error: cancelled ? undefined : Object.freeze(error),
      reason: cancelled ? "abort" : "failure",
      counts: this.#tally.counts(),
      answers: this.seal(),
      nextNode: isAtEdge ? undefined : node,
    });
    // The caller must see the run's own error; an event reports that this save failed too.
    const unsaved = (error: unknown): State<D> => {
      if (error instanceof CheckpointConflictError) conflicts(error);
      return left;
    };
    return this.#saver?.save(left).catch(unsaved) ?? left;
  }

  /** Whether the store has everything in a State of this run, and every answer. */
  #isSaved(state: State<D>): boolean {
    const saver = this.#saver;
    if (saver?.latest === undefined || !saver.has(state)) return false;
    return progressOf(saver.latest).answers === this.#visit.answers;
  }

  #emit<T extends EventType>(type: T, data: EventMap[T]): void {
    this.#settings.bus.emit(type, this.#settings.name, this.#visit.runId, data);
  }
}
