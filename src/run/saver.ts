import type { CheckpointStore, SaveOptions } from "../checkpoint/store.js";
import { now } from "../clock.js";
import { CheckpointConflictError, CheckpointSaveError, show } from "../errors.js";
import { unsaved } from "../state/record.js";
import { State } from "../state/state.js";
import type { Settings } from "./config.js";
import { Failure, messageOf } from "./failure.js";

/** Puts the States of one run into its store. */
export class Saver<D extends object> {
  readonly #store: CheckpointStore;
  readonly #settings: Settings;
  readonly #options: SaveOptions;
  readonly #timed: boolean;
  #latest: State<D> | undefined;
  #savedAt = now();
  /** Whether somebody waits to hear of the save under way, and when it began. */
  #told = false;
  #started = 0;

  constructor(store: CheckpointStore, settings: Settings, runId: string, latest?: State<D>) {
    this.#store = store;
    this.#settings = settings;
    const { keep, bus, name } = settings;
    this.#options = { keep, emit: (type, data) => bus.emit(type, name, runId, data) };
    this.#timed = settings.triggers.length > 0;
    this.#latest = latest;
  }

  /** Milliseconds since the last save. */
  get age(): number {
    return now() - this.#savedAt;
  }

  /** The State that is in the store. */
  get latest(): State<D> | undefined {
    return this.#latest;
  }

  /** Whether the store has all that a State of this run has. */
  has(state: State<D>): boolean {
    const latest = this.#latest;
    return (
      latest !== undefined &&
      State.recordOf(latest) === State.recordOf(state) &&
      latest.step === state.step &&
      latest.ledger === state.ledger
    );
  }

  /**
   * The State as it was saved. A conflict always ends the run; another error does what `onSaveError`
   * says, unless the State must be saved.
   */
  async save(state: State<D>, must = false): Promise<State<D>> {
    try {
      return this.accept(state, await this.put(state));
    } catch (error) {
      return this.refuse(state, error, must);
    }
  }

  /** The first half of {@link save}. The loop awaits it itself: a promise less is felt at every step. */
  put(state: State<D>): Promise<State<D>> {
    this.#told = this.#settings.bus.listens("checkpoint.save");
    if (this.#told) this.#started = now();
    return this.#store.save(state, this.#options);
  }

  /** The State as the checkpoint that the store made of it. */
  accept(state: State<D>, record: State<D>): State<D> {
    if (!(record instanceof State)) {
      throw new TypeError(`save wants to return a State, got ${show(record)}`);
    }
    const saved = state.savedAs(record);
    this.#latest = saved;
    if (this.#timed) this.#savedAt = now();
    if (this.#told) this.#tell(saved, now() - this.#started);
    return saved;
  }

  /** What becomes of a run whose State the store did not take. */
  refuse(state: State<D>, error: unknown, must: boolean): State<D> {
    const { runId, checkpointNode: node } = state;
    const { bus, name, onSaveError } = this.#settings;
    bus.emit("checkpoint.error", name, runId, { action: "save", node, error: messageOf(error) });
    if (error instanceof CheckpointConflictError) throw error;
    if (onSaveError === "continue" && !must) return state;
    const which = node === "" ? "the first checkpoint" : `the checkpoint after ${show(node)}`;
    const message = `${which} could not be saved: ${messageOf(error)}`;
    const cause = error instanceof CheckpointSaveError ? error.cause : error;
    throw new Failure("CHECKPOINT_SAVE", node, state, message, cause);
  }

  /** Removes the checkpoints of a finished run, which must not cost anybody the result. */
  async clean(state: State<D>): Promise<State<D>> {
    const { runId, checkpointNode: node, step } = state;
    const { bus, name, audit } = this.#settings;
    try {
      await this.#store.delete(runId);
      bus.emit("checkpoint.delete", name, runId, { node, step, ...audit });
      // It is in no store any more, so that it can be put into another.
      return state.savedAs(unsaved);
    } catch (error) {
      bus.emit("checkpoint.error", name, runId, {
        action: "delete",
        node,
        error: messageOf(error),
      });
      return state;
    }
  }

  #tell(saved: State<D>, durationMs: number): void {
    const { checkpointNode: node, step, sequence, checkpointId, reason, bytes } = saved;
    const { bus, name, audit } = this.#settings;
    const data = { node, step, sequence, checkpointId, reason, durationMs, ...audit };
    bus.emit("checkpoint.save", name, saved.runId, bytes === undefined ? data : { ...data, bytes });
  }
}
