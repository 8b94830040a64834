import type { Stop } from "../run/failure.js";

/** Passes the abort of one signal on to many of their own: Node warns when one signal has many listeners. */
export class SignalFan {
  readonly #source: AbortSignal;
  readonly #branches = new Set<AbortController>();
  readonly #abort = (): void => {
    for (const branch of this.#branches) branch.abort(this.#source.reason);
  };

  constructor(source: AbortSignal) {
    this.#source = source;
    source.addEventListener("abort", this.#abort);
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

  /** Lets go of the source. */
  end(): void {
    this.#source.removeEventListener("abort", this.#abort);
  }
}

/** What stops one item of many; its signals are made when somebody asks for them. */
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

  /** The item is done. */
  end(): void {
    this.#signals.close(this.#signal);
    this.#drains.close(this.#drain);
  }
}
