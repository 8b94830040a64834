import { CallScope } from "../../call-scope.js";
import type { Claim } from "../../checkpoint/store.js";
import { defer } from "../../concurrency.js";
import type { SchemaError } from "../../errors.js";
import type { Answer } from "../../state/pauses.js";
import type { State } from "../../state/state.js";
import { RunClaim } from "../saving/claim.js";
import { RunControl } from "./control.js";
import { type Plan, RunLoop } from "./loop.js";

/** The work on a run in this process, from before it is claimed until it has stopped. */
export class RunSession<D extends object> {
  readonly runId: string;
  readonly control = new RunControl();
  /** The scope in which its nodes are called. */
  readonly scope = new CallScope();
  /** Resolves when the run has stopped, for whatever reason. */
  readonly stopped: Promise<void>;
  readonly #begun = defer();
  readonly #stop: () => void;
  #claim: RunClaim | undefined;
  #loop: RunLoop<D> | undefined;

  constructor(runId: string) {
    this.runId = runId;
    const { promise, resolve } = defer();
    this.stopped = promise;
    this.#stop = resolve;
  }

  /** The claim under which the run is worked on; `undefined` if runs can't be claimed. */
  get claim(): RunClaim | undefined {
    return this.#claim;
  }

  /** Holds the run under a claim while the work lasts. */
  async under<T>(claim: Claim | undefined, work: () => Promise<T>): Promise<T> {
    this.#claim = claim && new RunClaim(this.runId, claim, this.control);
    try {
      return await work();
    } finally {
      await this.#claim?.release();
    }
  }

  /** Runs from a State to an exit point, a pause or an error. */
  walk(state: State<D>, plan: Plan<D>): Promise<State<D>> {
    const loop = new RunLoop(plan, state, this.control, this.#claim);
    this.#loop = loop;
    this.#begun.resolve();
    return this.scope.run(() => loop.run(state));
  }

  /** The State that the running node received; `undefined` before the run has begun. */
  get state(): State<D> | undefined {
    return this.#loop?.state;
  }

  /** Why an answer was refused in the last node that paused. */
  get refusal(): SchemaError | undefined {
    return this.#loop?.refusal;
  }

  /** Keeps an answer for a later pause; `false` if the run stopped before it could be kept. */
  async answer(answer: Answer): Promise<boolean> {
    await Promise.race([this.#begun.promise, this.stopped]);
    return this.#loop?.answer(answer) ?? false;
  }

  /** Notes that the run has stopped. */
  end(): void {
    this.#stop();
  }
}
