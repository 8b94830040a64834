import type { Claim } from "../checkpoint/store.js";
import { now } from "../clock.js";

/** Why a run is stopped before its end. */
export type StopReason = "cancel" | "close" | "lost";

/** A run that this worker works on. */
export class ActiveRun {
  readonly runId: string;
  readonly graph: string;
  readonly jobId: string;
  /** When it was claimed, in milliseconds since 1970. */
  readonly since = now();
  readonly #controller = new AbortController();
  /** The claim under which the run is worked on; `undefined` until it is claimed. */
  claim: Claim | undefined;
  #why: StopReason | undefined;
  #isLost = false;
  /** Resolves when all events have been sent to remote listeners. */
  #sent: Promise<unknown> = Promise.resolve();

  constructor(runId: string, graph: string, jobId: string) {
    this.runId = runId;
    this.graph = graph;
    this.jobId = jobId;
  }

  /** The `signal` of the run's nodes. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The first reason for which it was stopped. */
  get why(): StopReason | undefined {
    return this.#why;
  }

  /** Whether another worker may hold the run now, so that nothing more may be saved here. */
  get isLost(): boolean {
    return this.#isLost;
  }

  stop(why: StopReason, reason: unknown): void {
    this.#why ??= why;
    this.#isLost ||= why === "lost";
    this.#controller.abort(reason);
  }

  /** Runs the actions one after the other. */
  send(action: () => Promise<unknown>, onError: (error: unknown) => void): void {
    this.#sent = this.#sent.then(action).catch(onError);
  }

  /** Resolves when everything has been sent. */
  async flush(): Promise<void> {
    await this.#sent;
  }
}
