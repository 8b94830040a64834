import type { CheckpointStore } from "../../checkpoint/store.js";

/** Whether a process works on a run; `null` if the store can't say. */
export async function isLive(store: CheckpointStore, runId: string): Promise<boolean | null> {
  return store.holder === undefined ? null : (await store.holder(runId)) !== undefined;
}
