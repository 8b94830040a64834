import { CheckpointSaveError, isWaymarkError, show } from "../../errors.js";
import type { State } from "../../state/state.js";

/** Refuses a checkpoint that is too large. */
export function checkSize<D extends object>(
  place: string,
  state: State<D>,
  bytes: number,
  maxBytes: number,
): void {
  if (bytes <= maxBytes) return;
  const problem = `the checkpoint has ${bytes} bytes, more than maxBytes (${maxBytes})`;
  throw saveError(place, state, `${problem}: keep less in the State, or raise it`);
}

/** What a save is refused with: an error that says why, or one of the file system's, with its place around it. */
export function refusalOf<D extends object>(
  place: string,
  state: State<D>,
  error: unknown,
): unknown {
  // What is corrupt is in the way of this save, and no checkpoint that somebody asked for.
  const isMeant = isWaymarkError(error) && !isWaymarkError(error, "CHECKPOINT_CORRUPT");
  return isMeant ? error : saveError(place, state, messageOf(error), error);
}

function saveError<D extends object>(
  place: string,
  state: State<D>,
  problem: string,
  cause?: unknown,
): CheckpointSaveError {
  const { runId, checkpointNode: nodeName } = state;
  const message = `nothing of run ${show(runId)} was saved in ${place}: ${problem}`;
  return new CheckpointSaveError(message, { nodeName, state, path: [], cause });
}

/** What an error says, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
