import type { CheckpointStore } from "../../checkpoint/store.js";
import { CheckpointCorruptionError, isWaymarkError } from "../../errors.js";
import type { Checked, CheckedRun, Finding } from "./finding.js";

/** Looks at each checkpoint of a run by loading it. */
export async function checkRecords(
  store: CheckpointStore,
  runId: string,
  { quarantined, hasStrays }: Pick<CheckedRun, "quarantined" | "hasStrays">,
): Promise<CheckedRun> {
  /** What loading told of, by its sequence. */
  const told = new Map<number, string>();
  const emit = (type: string, data: object): void => {
    const text = type === "checkpoint.error" ? String(Reflect.get(data, "error")) : "";
    const [, sequence, copy = ""] =
      /^record (\d+) is corrupt, .*? copied to (.*)$/s.exec(text) ?? [];
    // Nothing is copied here: the name that the copy would have says where it is.
    const [, file, from] = /record_\d+\.(\w+)\.(\d+)\.json/.exec(copy) ?? [];
    if (sequence !== undefined) told.set(Number(sequence), `${file}.jsonl, from byte ${from} on`);
  };
  const entries = store.history === undefined ? [{}] : (await store.history(runId)).reverse();
  const checkpoints: Checked[] = [];
  for (const entry of entries) {
    const { checkpointId = "", sequence = 0, parentId = "" } = entry as Partial<Checked>;
    const at = checkpointId === "" ? {} : { checkpointId };
    try {
      const state = await store.load<object>(runId, at, { emit });
      const id = { checkpointId: state.checkpointId, sequence: sequence || state.sequence };
      checkpoints.push({ ...id, parentId, origin: state.parent });
    } catch (error) {
      const fault = await faultOf(store, runId, checkpointId, error);
      if (fault !== undefined) checkpoints.push({ sequence, checkpointId, parentId, fault });
    }
  }
  for (const [sequence, where] of told) {
    if (sequence === 0 || checkpoints.some((one) => one.sequence === sequence)) continue;
    const fault = {
      what: "corrupt",
      text: `its record is not what was written (${where})`,
    } as const;
    checkpoints.push({ sequence, checkpointId: "", parentId: "", fault });
  }
  const damage = told.get(0);
  const text = `the log holds something that is no record (${damage})`;
  const others: Finding[] =
    damage === undefined ? [] : [{ level: "problem", what: "log", runId: "", sequence: 0, text }];
  checkpoints.sort((a, b) => a.sequence - b.sequence);
  return { runId, checkpoints, quarantined, hasStrays, others };
}

async function faultOf(
  store: CheckpointStore,
  runId: string,
  checkpointId: string,
  error: unknown,
): Promise<Checked["fault"]> {
  const text = error instanceof Error ? error.message : String(error);
  if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) {
    const now = (await store.history?.(runId)) ?? [];
    // A run that goes on lets go of old checkpoints.
    if (now.every((entry) => entry.checkpointId !== checkpointId)) return undefined;
    return { what: "lost", text: "it needs a record that is corrupt" };
  }
  if (!isWaymarkError(error, "CHECKPOINT_CORRUPT")) return { what: "unreadable", text };
  const { cause } = error;
  return {
    what: "corrupt",
    text: cause instanceof CheckpointCorruptionError ? cause.message : text,
  };
}
