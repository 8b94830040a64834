import { CallScope } from "../call-scope.js";
import type { CheckpointAt, Claim } from "../checkpoint/store.js";
import { defer } from "../concurrency.js";
import type { CheckpointConflictError } from "../errors.js";
import type { Answer } from "../state/record.js";
import type { State } from "../state/state.js";
import { RunClaim } from "./claim.js";
import type { Run, ValuesListener } from "./run.js";
import type { Gate } from "./stream.js";

/** How a run is started or resumed. */
export interface RunOptions<D extends object> extends CheckpointAt {
  readonly onValues?: ValuesListener<D> | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly input?: unknown;
  readonly gate?: Gate | undefined;
}

/** A run in progress, from before it has begun. */
export class Running<D extends object> {
  readonly runId: string;
  /** Resolves when the run has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  /** The scope in which its nodes are called. */
  readonly scope = new CallScope();
  readonly #begun = defer();
  readonly #stop: () => void;
  #run: Run<D> | undefined;
  #cancelled: { readonly reason: unknown } | undefined;
  #drains = false;
  #lost: CheckpointConflictError | undefined;
  /** The claim under which the run is worked on; `undefined` if runs can't be claimed. */
  claim: RunClaim | undefined;

  constructor(runId: string) {
    this.runId = runId;
    const { promise, resolve } = defer();
    this.stopped = promise;
    this.#stop = resolve;
  }

  /** The State that the running node received; `undefined` before the run has begun. */
  get state(): State<D> | undefined {
    return this.#run?.state;
  }

  /** Notes the claim under which the run is worked on. */
  hold(claim: Claim): void {
    this.claim = new RunClaim(this.runId, claim, (error) => {
      this.#lost = error;
      this.#run?.lose(error);
    });
  }

  attach(run: Run<D>): void {
    this.#run = run;
    this.#begun.resolve();
    if (this.#drains) run.drain();
    if (this.#cancelled !== undefined) run.cancel(this.#cancelled.reason);
    if (this.#lost !== undefined) run.lose(this.#lost);
  }

  drain(): void {
    this.#drains = true;
    this.#run?.drain();
  }

  /** Stops the run so that it can be resumed. */
  cancel(reason: unknown): void {
    this.#cancelled ??= { reason };
    this.#run?.cancel(reason);
  }

  /** Notes that the run has stopped. */
  end(): void {
    this.#stop();
  }

  /** Keeps an answer for a later pause; `false` if the run stopped before it could be kept. */
  async answer(answer: Answer): Promise<boolean> {
    await Promise.race([this.#begun.promise, this.stopped]);
    return this.#run?.answer(answer) ?? false;
  }
}
