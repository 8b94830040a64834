import { type ErrorCode, ExecutionError, errorTable, show, WaymarkError } from "../errors.js";
import { errorOf } from "../run/handles/stored.js";
import type { State } from "../state/state.js";
import type { JobData } from "./job.js";

/** The position of a run that is in no store. */
const nowhere = { checkpointNode: "", step: 0, data: {} };

/** The error of a run that was cancelled. */
export function cancelledError<D extends object>(
  runId: string,
  saved: State<D> | undefined,
): ExecutionError {
  const state = saved ?? { runId, ...nowhere };
  const options = { nodeName: state.checkpointNode, state, path: [] };
  const what =
    saved === undefined
      ? "is neither in the queue nor in the store: it was never submitted, or removed"
      : saved.status === "pending"
        ? "was cancelled before it started"
        : "was cancelled";
  return new ExecutionError("ABORTED", `run ${show(runId)} ${what}`, options);
}

/** The error of a run that failed for good, as its worker saw it. */
export function failedError<D extends object>(
  runId: string,
  saved: State<D> | undefined,
  failure: JobData["failure"],
  reason: string,
): WaymarkError {
  const failed = failure?.code as ErrorCode | undefined;
  if (failure !== undefined && failed !== undefined && !isExecution(failed)) {
    return new WaymarkError(failed, failure.message);
  }
  const { name = "Error", message = reason } = saved?.error ?? failure ?? {};
  const state = saved ?? { runId, ...nowhere };
  const cause = errorOf({ name, message });
  const code = (failure?.code ?? "NODE_FAILED") as "NODE_FAILED";
  const text = failure?.message ?? message;
  const nodeName = saved?.error?.node ?? state.checkpointNode;
  return new ExecutionError(code, text, { nodeName, state, path: [], cause });
}

/** Whether an error of this code is an `ExecutionError`. */
function isExecution(code: ErrorCode): boolean {
  return ["ExecutionError", "CheckpointSaveError"].includes(errorTable[code]?.class);
}
