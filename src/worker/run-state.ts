import type { RunState } from "../run/handle.js";
import type { State } from "../state/state.js";

/** Whether a job in this state is worked on no more. */
export function hasEnded(where: string): boolean {
  return where === "failed" || where === "completed" || where === "unknown";
}

/** What a run does, by where its job is and what was saved of it. */
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
