import type { CheckpointStore, SaveOptions } from "../../checkpoint/store.js";
import { monotonic, msSince, now } from "../../clock.js";
import { CheckpointConflictError, CheckpointSaveError, messageOf, show } from "../../errors.js";
import { progressOf } from "../../state/derive.js";
import { unsaved } from "../../state/fields.js";
import type { Answer } from "../../state/pauses.js";
import { recordOf, State, sinkOf } from "../../state/state.js";
import type { Settings } from "../config.js";
import type { RunControl } from "../loop/control.js";
import { Failure } from "../loop/failure.js";
import { AdaptiveInterval, type Decision } from "./adaptive.js";

/** A State to save, and the figures behind the decision. */
interface Job<D extends object> {
  readonly state: State<D>;
  readonly decision: Decision | undefined;
}

/** Saves the States of one run. */
export class Saver<D extends object> {
  /** Decides when to save, with `interval: "adaptive"`. */
  readonly adaptive: AdaptiveInterval | undefined;
  /** The newest State in the store. */
  latest: State<D> | undefined;
  readonly #store: CheckpointStore;
  readonly #settings: Settings;
  readonly #emit: NonNullable<SaveOptions["emit"]>;
  readonly #options: SaveOptions;
  readonly #timed: boolean;
  readonly #control: RunControl;
  #savedAt = now();
  /** When the save under way began; -1 if it is not timed. */
  #started = -1;
  /** The figures behind the save under way. */
  #decision: Decision | undefined;
  /** In the background: the save under way, the State to save next, and the error of a failed save. */
  #underWay: Promise<void> | undefined;
  #waiting: Job<D> | undefined;
  #failure: unknown;

  /**
   * @param state - the State that the run starts or continues from.
   * @param control - has the claim, which is checked before each save; aborted if a save finds that another writer has
   * the run.
   */
  constructor(
    store: CheckpointStore,
    settings: Settings,
    state: State<D>,
    control: RunControl,
    latest?: State<D>,
  ) {
    const { keep, keepPerPhase, bus, name, adaptive } = settings;
    const { runId } = state;
    this.latest = latest;
    this.#store = store;
    this.#settings = settings;
    this.#emit = (type, data) => bus.emit(type, name, runId, data);
    this.#options = { keep, keepPerPhase, emit: this.#emit };
    this.#timed = settings.triggers.length > 0;
    this.#control = control;
    if (adaptive === undefined) return;
    const { counts, crashes, ledger } = progressOf(state);
    const work = Object.values(counts.work());
    const worked = work.reduce((sum, { durationMs }) => sum + durationMs, 0);
    this.adaptive = new AdaptiveInterval(adaptive, worked, crashes, ledger.usage.costUsd);
  }

  /** Milliseconds since the last save. */
  get age(): number {
    return msSince(this.#savedAt);
  }

  /** Whether the store has everything in a State of this run, and these answers. */
  has(state: State<D>, answers: readonly Answer[]): boolean {
    const { latest } = this;
    return (
      latest !== undefined &&
      recordOf(latest).saved === recordOf(state).saved &&
      latest.step === state.step &&
      latest.ledger === state.ledger &&
      progressOf(latest).answers === answers
    );
  }

  /**
   * Saves a State and returns it as saved. A conflict always ends the run; any other error is handled as
   * `onSaveError` says, unless the State must be saved.
   */
  async save(state: State<D>, must = false): Promise<State<D>> {
    const next = this.#settings.mode === "async" ? await this.settled(state) : state;
    try {
      return this.accept(next, await this.put(next));
    } catch (error) {
      return this.refuse(next, error, must);
    }
  }

  /**
   * Saves a State while the run continues. One save is under way at a time; of the States that arrive meanwhile, only
   * the newest is saved next.
   *
   * @throws the error of an earlier save.
   */
  defer(state: State<D>): void {
    this.check(state);
    const job = { state, decision: this.adaptive?.begin() };
    if (this.#underWay === undefined) this.#underWay = this.#saveInBackground(job);
    else this.#waiting = job;
  }

  /** Throws the error of a failed background save. */
  check(state: State<D>): void {
    const failure = this.#failure;
    if (failure === undefined) return;
    this.#failure = undefined;
    this.refuse(state, failure, false);
  }

  /** Waits for background saves, and returns the State as the successor of the newest one in the store. */
  async settled(state: State<D>): Promise<State<D>> {
    while (this.#underWay !== undefined) await this.#underWay;
    this.check(state);
    return this.#onLatest(state);
  }

  async #saveInBackground(first: Job<D>): Promise<void> {
    for (let job: Job<D> | undefined = first; job !== undefined; job = this.#waiting) {
      this.#waiting = undefined;
      const next = this.#onLatest(job.state);
      try {
        this.accept(next, await this.put(next, job.decision));
      } catch (error) {
        this.#failure = error;
        // The node that runs meanwhile need not finish: its result can't be saved.
        if (error instanceof CheckpointConflictError) this.#control.abort(error);
        break;
      }
    }
    this.#underWay = undefined;
  }

  /** The State as the successor of the newest one in the store. */
  #onLatest(state: State<D>): State<D> {
    return this.latest === undefined ? state : state.savedAs(recordOf(this.latest).saved);
  }

  /** The first half of {@link save}. The loop awaits it directly, which saves one promise per step. */
  put(state: State<D>, decision = this.adaptive?.begin()): Promise<State<D>> {
    this.#decision = decision;
    const checking = this.#control.check();
    if (checking !== undefined) return checking.then(() => this.#put(state));
    return this.#put(state);
  }

  #put(state: State<D>): Promise<State<D>> {
    const { lost } = this.#control;
    if (lost !== undefined) return Promise.reject(lost);
    const isTimed = this.adaptive !== undefined || this.#settings.bus.listens("checkpoint.save");
    this.#started = isTimed ? monotonic() : -1;
    return this.#store.save(state, this.#options);
  }

  /** The second half of {@link save}: the State with the identity of its checkpoint. */
  accept(state: State<D>, record: State<D>): State<D> {
    if (!(record instanceof State)) {
      throw new TypeError(`store.save() must return a State; got ${show(record)}`);
    }
    const saved = isSameCheckpoint(state, record) ? record : state.savedAs(record);
    this.latest = saved;
    if (this.#timed) this.#savedAt = now();
    if (this.#started >= 0) this.#measure(saved, monotonic() - this.#started);
    return saved;
  }

  /** Handles a failed save: returns the State if the run may continue, otherwise throws. */
  refuse(state: State<D>, error: unknown, must: boolean): State<D> {
    const { checkpointNode: node } = state;
    if (this.#decision !== undefined) this.adaptive?.failed(this.#decision);
    this.#emit("checkpoint.error", { action: "save", node, error: messageOf(error) });
    if (error instanceof CheckpointConflictError) {
      this.#control.abort(error);
      throw error;
    }
    if (this.#settings.onSaveError === "continue" && !must) return state;
    const which = node === "" ? "the first checkpoint" : `the checkpoint after ${show(node)}`;
    const message = `${which} could not be saved: ${messageOf(error)}`;
    const cause = error instanceof CheckpointSaveError ? error.cause : error;
    throw new Failure("CHECKPOINT_SAVE", node, state, message, cause);
  }

  /** Removes the checkpoints of a completed run; a failure here must not lose the result. */
  async clean(state: State<D>): Promise<State<D>> {
    const { runId, checkpointNode: node, step } = state;
    try {
      await this.#control.verify();
      await this.#store.delete(runId);
      this.#emit("checkpoint.delete", { node, step, ...this.#settings.audit });
      // Marked as unsaved, so that it can be saved in another store.
      return state.savedAs(unsaved);
    } catch (error) {
      this.#emit("checkpoint.error", { action: "delete", node, error: messageOf(error) });
      return state;
    }
  }

  #measure(saved: State<D>, exactMs: number): void {
    const { checkpointNode: node, step, sequence, checkpointId, reason, bytes } = saved;
    const { bus, audit } = this.#settings;
    this.adaptive?.saved(exactMs);
    if (!bus.listens("checkpoint.save")) return;
    const durationMs = Math.round(exactMs);
    this.#emit("checkpoint.save", {
      ...{ node, step, sequence, checkpointId, reason, durationMs, ...audit },
      ...(bytes !== undefined && { bytes }),
      ...(this.#decision !== undefined && { adaptive: this.#decision }),
    });
  }
}

/** Whether a store returned this very State as saved, so that no new State is needed. */
function isSameCheckpoint<D extends object>(state: State<D>, record: State<D>): boolean {
  const [given, saved] = [recordOf(state), recordOf(record)];
  return (
    given.data === saved.data &&
    given.progress === saved.progress &&
    given.identity === saved.identity &&
    sinkOf(state) === sinkOf(record)
  );
}
