import type { CheckpointStore, Claim } from "../../checkpoint/store.js";
import { CheckpointConflictError } from "../../errors.js";
import type { Gate } from "../handles/stream.js";
import { DRAINS } from "./failure.js";

/**
 * Claims a run; `undefined` if the store can't.
 *
 * @throws CheckpointConflictError, naming the holder, or the error of a store that fails.
 */
export async function claimOf(
  store: CheckpointStore | undefined,
  runId: string,
): Promise<Claim | undefined> {
  if (store?.claim === undefined) return undefined;
  // An error here must stop the run: without a sure claim, another process may begin the same node.
  const claim = await store.claim(runId);
  if (claim !== undefined) return claim;
  const holder = await store.holder?.(runId).catch(() => undefined);
  // Without a holder, the claim was released in the meantime.
  const again = holder === undefined ? await store.claim(runId) : undefined;
  if (again !== undefined) return again;
  throw new CheckpointConflictError(runId, 0, 0, { holder });
}

/** The same claim, which its user can't release. */
export function borrowed(claim: Claim): Claim {
  return { ...claim, release: async () => {} };
}

/**
 * What can stop a run before its end; shared by everything that works on it, from before it has begun. Its claim is
 * checked before anything begins and before anything is saved. Its fields are written here only.
 */
export class RunControl {
  readonly runId: string;
  readonly #controller = new AbortController();
  /** A copy of `signal.aborted`, which is too slow to read at every step. */
  aborted = false;
  drains = false;
  /** What makes the run wait for a slow reader of its events; open once the run is about to stop. */
  gate: Gate | undefined;
  /** Set once another process may have the run: after that nothing begins and nothing is saved. */
  lost: CheckpointConflictError | undefined;
  #drain: AbortController | undefined;
  #claim: Claim | undefined;

  constructor(runId: string) {
    this.runId = runId;
  }

  /** Aborts when the run must stop as soon as possible: it is cancelled, or another process has it. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts when the run drains. Created on first use: few nodes read it. */
  get draining(): AbortSignal {
    this.#drain ??= new AbortController();
    if (this.drains) this.#drain.abort(DRAINS);
    return this.#drain.signal;
  }

  waitFor(gate: Gate | undefined): void {
    this.gate = gate;
    if (this.aborted || this.drains) gate?.open();
  }

  /** Stops the run as soon as possible. With a CheckpointConflictError nothing more is written to its store. */
  abort(reason: unknown): void {
    this.aborted = true;
    this.#controller.abort(reason);
    this.gate?.open();
  }

  /** Lets the running node finish, then stops the run so that it can be resumed. */
  drain(): void {
    this.drains = true;
    this.#drain?.abort(DRAINS);
    this.gate?.open();
  }

  /** Holds the run under a claim while the work lasts; `undefined` if runs can't be claimed. */
  async under<T>(claim: Claim | undefined, work: () => Promise<T>): Promise<T> {
    this.#claim = claim;
    claim?.lost?.addEventListener("abort", () => this.#lose());
    if (claim?.lost?.aborted) this.#lose();
    try {
      return await work();
    } finally {
      // A claim that can't be released ends with this process.
      await claim?.release().catch(() => {});
    }
  }

  /** The claim for a run inside this one: if the inner run finds it lost, so does this one. */
  get lent(): Claim | undefined {
    if (this.#claim === undefined) return undefined;
    const isHeld = (): boolean => this.lost === undefined;
    return { holds: () => this.check()?.then(isHeld) ?? isHeld(), release: async () => {} };
  }

  /** Finds out whether the claim is lost: at once, or when the promise resolves. */
  check(): Promise<void> | undefined {
    if (this.#claim === undefined || this.lost !== undefined) return undefined;
    const holds = this.#claim.holds?.() ?? true;
    if (typeof holds !== "boolean") return this.#settle(holds);
    if (!holds) this.#lose();
    return undefined;
  }

  /** Awaited before work begins: throws if the claim is lost. `undefined` if the run can't be claimed. */
  verify(): Promise<void> | undefined {
    return this.#claim && this.#verify();
  }

  async #verify(): Promise<void> {
    await this.check();
    if (this.lost !== undefined) throw this.lost;
  }

  async #settle(holds: Promise<boolean>): Promise<void> {
    // If the check fails, the claim may be lost.
    if (!(await holds.catch(() => false))) this.#lose();
  }

  #lose(): void {
    if (this.lost !== undefined) return;
    const cause: unknown = this.#claim?.lost?.reason;
    this.lost = new CheckpointConflictError(this.runId, 0, 0, { cause });
    this.abort(this.lost);
  }
}
