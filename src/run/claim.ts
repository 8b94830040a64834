import type { CheckpointStore, Claim } from "../checkpoint/store.js";
import { CheckpointConflictError } from "../errors.js";

/** Gets the claim under which a run is worked on; `undefined` where runs can't be claimed. */
export type ClaimRun = (
  store: CheckpointStore | undefined,
  runId: string,
) => Promise<Claim | undefined>;

/**
 * A claim on a run; `undefined` where runs can't be claimed.
 *
 * @throws CheckpointConflictError that names who has it, and what the store throws if it can't say.
 */
export async function claimOf(
  store: CheckpointStore | undefined,
  runId: string,
): Promise<Claim | undefined> {
  if (store?.claim === undefined) return undefined;
  // Who does not know whether it has the run must not begin a node: another may be about to.
  const claim = await store.claim(runId);
  if (claim !== undefined) return claim;
  const holder = await store.holder?.(runId).catch(() => undefined);
  // Nobody has it any more: whoever had it has released it meanwhile.
  const again = holder === undefined ? await store.claim(runId) : undefined;
  if (again !== undefined) return again;
  throw new CheckpointConflictError(runId, 0, 0, { holder });
}

/** The same claim for somebody who must not release it. */
export function borrowed(claim: Claim): Claim {
  return { ...claim, release: async () => {} };
}

/** The claim of a run under way, which is asked before anything begins and before anything is saved. */
export class RunClaim {
  readonly #claim: Claim;
  readonly #runId: string;
  readonly #onLost: (error: CheckpointConflictError) => void;
  #error: CheckpointConflictError | undefined;

  constructor(runId: string, claim: Claim, onLost: (error: CheckpointConflictError) => void) {
    this.#claim = claim;
    this.#runId = runId;
    this.#onLost = onLost;
    claim.lost?.addEventListener("abort", () => this.#lose());
    if (claim.lost?.aborted) this.#lose();
  }

  /** The error once another process may have the run: after that nothing begins, and nothing is saved. */
  get lost(): CheckpointConflictError | undefined {
    return this.#error;
  }

  /** The same for a run inside this one: what it finds out, this one knows. */
  lent(): Claim {
    const isHeld = (): boolean => this.#error === undefined;
    return { holds: () => this.check()?.then(isHeld) ?? isHeld(), release: async () => {} };
  }

  /** Finds out whether it is lost: at once, or when the promise resolves. */
  check(): Promise<void> | undefined {
    if (this.#error !== undefined) return undefined;
    const holds = this.#claim.holds?.() ?? true;
    if (typeof holds !== "boolean") return this.#settle(holds);
    if (!holds) this.#lose();
    return undefined;
  }

  /** Throws if it is lost. */
  async verify(): Promise<void> {
    await this.check();
    if (this.#error !== undefined) throw this.#error;
  }

  async #settle(holds: Promise<boolean>): Promise<void> {
    // One that can't be asked for is not known to be good.
    if (!(await holds.catch(() => false))) this.#lose();
  }

  #lose(): void {
    if (this.#error !== undefined) return;
    const cause: unknown = this.#claim.lost?.reason;
    this.#error = new CheckpointConflictError(this.#runId, 0, 0, { cause });
    this.#onLost(this.#error);
  }
}
