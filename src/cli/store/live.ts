import type { CheckpointStore } from "../../checkpoint/store.js";

/** Whether a process is working on a run; `null` if the store can't tell. */
export async function isLive(store: CheckpointStore, runId: string): Promise<boolean | null> {
  return store.holder === undefined ? null : (await store.holder(runId)) !== undefined;
}
