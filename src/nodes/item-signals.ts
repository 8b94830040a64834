import { onAbort } from "../concurrency.js";
import type { Stop } from "../run/failure.js";

/** Forwards the abort of one signal to many others: Node warns if one signal has many listeners. */
export class SignalFan {
  readonly #source: AbortSignal;
  readonly #branches = new Set<AbortController>();
  /** Stops listening to the source. */
  readonly end: () => void;

  constructor(source: AbortSignal) {
    this.#source = source;
    this.end = onAbort(source, () => {
      for (const branch of this.#branches) branch.abort(source.reason);
    });
  }

  open(): AbortController {
    const branch = new AbortController();
    if (this.#source.aborted) branch.abort(this.#source.reason);
    else this.#branches.add(branch);
    return branch;
  }

  close(branch: AbortController | undefined): void {
    if (branch !== undefined) this.#branches.delete(branch);
  }
}

/** The signals that stop one item; each is created on first use. */
export class ItemSignals implements Stop {
  readonly #signals: SignalFan;
  readonly #drains: SignalFan;
  #signal: AbortController | undefined;
  #drain: AbortController | undefined;

  constructor(signals: SignalFan, drains: SignalFan) {
    this.#signals = signals;
    this.#drains = drains;
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#signals.open();
    return this.#signal.signal;
  }

  get draining(): AbortSignal {
    this.#drain ??= this.#drains.open();
    return this.#drain.signal;
  }

  /** Releases the signals of a finished item. */
  end(): void {
    this.#signals.close(this.#signal);
    this.#drains.close(this.#drain);
  }
}
