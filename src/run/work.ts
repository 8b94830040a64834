import { CheckpointConflictError, ConfigError, show } from "../errors.js";
import { encode } from "../state/encode.js";
import type { Ledger } from "../state/ledger.js";
import { OPAQUE, own, traitsOf } from "../state/own.js";
import { State } from "../state/state.js";
import type { Saver } from "./saver.js";

/**
 * What one visit of a node does before it completes: results it must not lose, milestones. The
 * State in here has the node before it as `checkpointNode`, and a resume runs this node again.
 */
export class Work<D extends object> {
  readonly #node: string;
  readonly #saver: Saver<D> | undefined;
  readonly #ledger: () => Ledger;
  readonly #lost: (error: unknown) => void;
  readonly #results: Map<string, unknown>;
  #state: State<D>;
  #opaque: boolean;
  #saving: Promise<void> = Promise.resolve();
  #waiting: Promise<void> | undefined;
  #failure: unknown;

  constructor(
    node: string,
    state: State<D>,
    saver: Saver<D> | undefined,
    ledger: () => Ledger,
    lost: (error: unknown) => void,
  ) {
    const before = state.unfinished?.node === node ? state.unfinished : undefined;
    this.#node = node;
    this.#saver = saver;
    this.#ledger = ledger;
    this.#lost = lost;
    this.#results = new Map(Object.entries(before?.results ?? {}));
    this.#opaque = before?.opaque ?? false;
    this.#state = state;
  }

  /** The error of a save. The run must not go on after it, whatever the node makes of it. */
  get failure(): unknown {
    return this.#failure;
  }

  has(key: string): boolean {
    return this.#results.has(key);
  }

  recall(key: string): unknown {
    return this.#results.get(key);
  }

  /** Keeps a value; it is saved when the promise resolves. */
  remember(key: string, value: unknown): Promise<void> {
    const kept: unknown = own(value);
    if (traitsOf(kept) & OPAQUE) {
      // Refused here, by its own name, and not by the save that happens to come next.
      encode(kept, key);
      this.#opaque = true;
    }
    this.#results.set(key, kept);
    return this.#save("once");
  }

  /** Goes on from another State; it is saved when the promise resolves. */
  async milestone(state: State<D>, reason: string): Promise<State<D>> {
    if (!(state instanceof State))
      throw new ConfigError("state", `wants a State, got ${show(state)}`);
    this.#state = State.advance(this.#state, state, State.fields(this.#state).progress);
    await this.#save(reason);
    return this.#snapshot();
  }

  /** All is saved and the node is done: the State that its result goes on from. */
  async end(): Promise<State<D>> {
    await this.#settle();
    if (this.#failure !== undefined) throw this.#failure;
    return this.#state;
  }

  /** The node is not done: the State that its next attempt starts from. */
  async left(): Promise<State<D>> {
    await this.#settle();
    return this.#snapshot();
  }

  async #settle(): Promise<void> {
    while (this.#waiting !== undefined) await this.#waiting;
    await this.#saving;
  }

  #snapshot(): State<D> {
    const results = Object.freeze(Object.fromEntries(this.#results));
    const unfinished = Object.freeze({ node: this.#node, results, opaque: this.#opaque });
    return State.progressed(this.#state, { unfinished, ledger: this.#ledger() });
  }

  /** Those who come while a save is under way share the next one. */
  async #save(reason: string): Promise<void> {
    if (this.#saver === undefined) return;
    this.#waiting ??= this.#saving.then(() => {
      this.#waiting = undefined;
      this.#saving = this.#saveNow(reason);
      return this.#saving;
    });
    await this.#waiting;
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Never rejects; what went wrong is kept. */
  async #saveNow(reason: string): Promise<void> {
    if (this.#saver === undefined || this.#failure !== undefined) return;
    try {
      const saved = await this.#saver.save(State.progressed(this.#snapshot(), { reason }));
      // A milestone may have come meanwhile, so only the record is taken.
      this.#state = this.#state.savedAs(saved);
    } catch (error) {
      this.#failure = error;
      if (error instanceof CheckpointConflictError) this.#lost(error);
    }
  }
}
