import type { Gate } from "../handles/stream.js";
import { DRAINS } from "./failure.js";

/** What can stop a run before its end; shared by everything that works on it, from before it has begun. */
export class RunControl {
  readonly #controller = new AbortController();
  #drain: AbortController | undefined;
  /** A copy of `signal.aborted`, which is too slow to read at every step. */
  #aborted = false;
  #drains = false;
  #gate: Gate | undefined;

  /** Aborts when the run must stop as soon as possible: it is cancelled, or another process has it. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts when the run drains. Created on first use: few nodes read it. */
  get draining(): AbortSignal {
    this.#drain ??= new AbortController();
    if (this.#drains) this.#drain.abort(DRAINS);
    return this.#drain.signal;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get drains(): boolean {
    return this.#drains;
  }

  /** What makes the run wait for a slow reader of its events; open once the run is about to stop. */
  get gate(): Gate | undefined {
    return this.#gate;
  }

  waitFor(gate: Gate | undefined): void {
    this.#gate = gate;
    if (this.#aborted || this.#drains) gate?.open();
  }

  /** Stops the run as soon as possible. With a CheckpointConflictError nothing more is written to its store. */
  abort(reason: unknown): void {
    this.#aborted = true;
    this.#controller.abort(reason);
    this.#gate?.open();
  }

  /** Lets the running node finish, then stops the run so that it can be resumed. */
  drain(): void {
    this.#drains = true;
    this.#drain?.abort(DRAINS);
    this.#gate?.open();
  }
}
