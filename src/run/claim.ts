import type { CheckpointStore, Claim } from "../checkpoint/store.js";
import { CheckpointConflictError } from "../errors.js";

/**
 * A claim on a run; `undefined` where runs can't be claimed.
 *
 * @throws CheckpointConflictError that names who has it.
 */
export async function claimOf(
  store: CheckpointStore | undefined,
  runId: string,
): Promise<Claim | undefined> {
  if (store?.claim === undefined) return undefined;
  let claim: Claim | undefined;
  try {
    claim = await store.claim(runId);
  } catch {
    // Whether a run may continue is decided by its saves.
    return undefined;
  }
  if (claim !== undefined) return claim;
  const holder = await store.holder?.(runId).catch(() => undefined);
  throw new CheckpointConflictError(runId, 0, 0, { holder });
}
