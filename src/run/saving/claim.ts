import type { CheckpointStore, Claim } from "../../checkpoint/store.js";
import { CheckpointConflictError } from "../../errors.js";
import type { RunControl } from "../loop/control.js";

/** Claims a run for this process; `undefined` if runs can't be claimed. */
export type ClaimRun = (
  store: CheckpointStore | undefined,
  runId: string,
) => Promise<Claim | undefined>;

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

/** The claim of a run in progress, checked before anything begins and before anything is saved. */
export class RunClaim {
  readonly #claim: Claim;
  readonly #runId: string;
  readonly #control: RunControl;
  #lost: CheckpointConflictError | undefined;

  /** @param control - aborts the run once another process may have it. */
  constructor(runId: string, claim: Claim, control: RunControl) {
    this.#claim = claim;
    this.#runId = runId;
    this.#control = control;
    claim.lost?.addEventListener("abort", () => this.#lose());
    if (claim.lost?.aborted) this.#lose();
  }

  /** Set once another process may have the run: after that nothing begins and nothing is saved. */
  get lost(): CheckpointConflictError | undefined {
    return this.#lost;
  }

  /** The claim for a run inside this one: if the inner run finds it lost, so does this one. */
  lent(): Claim {
    const isHeld = (): boolean => this.#lost === undefined;
    return { holds: () => this.check()?.then(isHeld) ?? isHeld(), release: async () => {} };
  }

  /** Finds out whether it is lost: at once, or when the promise resolves. */
  check(): Promise<void> | undefined {
    if (this.#lost !== undefined) return undefined;
    const holds = this.#claim.holds?.() ?? true;
    if (typeof holds !== "boolean") return this.#settle(holds);
    if (!holds) this.#lose();
    return undefined;
  }

  /** Throws if it is lost. */
  async verify(): Promise<void> {
    await this.check();
    if (this.#lost !== undefined) throw this.#lost;
  }

  /** Releases it. A claim that can't be released ends with this process. */
  async release(): Promise<void> {
    await this.#claim.release().catch(() => {});
  }

  async #settle(holds: Promise<boolean>): Promise<void> {
    // If the check fails, the claim may be lost.
    if (!(await holds.catch(() => false))) this.#lose();
  }

  #lose(): void {
    if (this.#lost !== undefined) return;
    const cause: unknown = this.#claim.lost?.reason;
    this.#lost = new CheckpointConflictError(this.#runId, 0, 0, { cause });
    this.#control.abort(this.#lost);
  }
}
