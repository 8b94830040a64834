import type { HistoryEntry } from "./store.js";

/** Whether a checkpoint's name is a step. */
export function isStep(given: string): boolean {
  return /^\d{1,9}$/.test(given);
}

/**
 * The id of the checkpoint with this name: its own id, or a node or phase that had completed, which means the newest
 * such checkpoint; `undefined` if there is none.
 */
export function namedBy(given: string, history: readonly HistoryEntry[]): string | undefined {
  const isNamed = ({ checkpointId, node, phase }: HistoryEntry): boolean =>
    [checkpointId, node, phase].includes(given);
  const found =
    history.find(({ checkpointId }) => checkpointId === given) ??
    history.find((entry) => !entry.unfinished && isNamed(entry));
  return found?.checkpointId;
}
