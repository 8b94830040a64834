import type { RunState } from "../run/handles/handle.js";
import type { State } from "../state/state.js";

/** Whether a job in this state has ended. */
export function hasEnded(where: string): boolean {
  return where === "failed" || where === "completed" || where === "unknown";
}

/** The state of a run, from the state of its job and its newest checkpoint. */
export function stateOf<D extends object>(
  where: string,
  saved: State<D> | undefined,
): RunState["state"] {
  switch (where) {
    case "active":
      return "running";
    case "failed":
      return "failed";
    case "delayed": {
      const isPaused = saved?.status === "paused";
      return isPaused && saved.pauses.some(({ until }) => until === undefined)
        ? "paused"
        : "delayed";
    }
    case "completed":
    case "unknown":
      if (saved === undefined) return "unknown";
      return saved.status === "completed" ? "completed" : "cancelled";
    default:
      return "waiting";
  }
}
