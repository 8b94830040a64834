import type { HistoryEntry } from "./store.js";

/** Whether a text that names a checkpoint is its step. */
export function isStep(given: string): boolean {
  return /^\d{1,9}$/.test(given);
}

/**
 * The id of the checkpoint that a text names: its own id, or the node or phase that had completed, of which the newest is
 * meant; `undefined` if there is none.
 */
export function namedBy(given: string, history: readonly HistoryEntry[]): string | undefined {
  const isNamed = ({ checkpointId, node, phase }: HistoryEntry): boolean =>
    [checkpointId, node, phase].includes(given);
  const found =
    history.find(({ checkpointId }) => checkpointId === given) ??
    history.find((entry) => !entry.unfinished && isNamed(entry));
  return found?.checkpointId;
}
