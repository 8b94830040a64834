import type { PauseRequest } from "../state/record.js";
import type { State } from "../state/state.js";

/** What a run of the queue does, or how it ended. */
export interface RunState {
  /**
   * - `waiting`: for a worker; `running`: one works on it;
   * - `delayed`: until a moment, or its next try; `paused`: until it gets input;
   * - `completed`, `failed`;
   * - `cancelled`: it is in the store, unfinished, and not in the queue;
   * - `unknown`: neither has it.
   */
  readonly state:
    | "waiting"
    | "running"
    | "delayed"
    | "paused"
    | "completed"
    | "failed"
    | "cancelled"
    | "unknown";
  /** The last node that completed. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** What it waits for, if it is paused or sleeps. */
  readonly pauses: readonly PauseRequest[];
  /** The message of the last error, if it failed, also if it is tried again. */
  readonly error?: string;
  /** Why the last input was refused. */
  readonly refused?: string;
}

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
