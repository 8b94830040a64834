import type { AnyEvent } from "../../events.js";
import type { PauseRequest } from "../../state/pauses.js";
import type { State } from "../../state/state.js";

/** What a run is doing, or how it ended. */
export interface RunState {
  /**
   * - `waiting`: for a worker; `running`: a process is working on it;
   * - `delayed`: until a set time or its next attempt; `paused`: until it is resumed;
   * - `completed`, `failed`;
   * - `cancelled`: it is in the store, unfinished, and no process is working on it;
   * - `unknown`: there is no such run.
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
  /** What it waits for, if it is paused or sleeping. */
  readonly pauses: readonly PauseRequest[];
  /** The message of the last error, if it failed, even if it will be retried. */
  readonly error?: string;
  /** Why the last input was refused. */
  readonly refused?: string;
}

/** Options of {@link RunHandle.result}. */
export interface WaitOptions {
  /** Stops waiting. The run continues. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link RunHandle.events}. */
export interface EventsOptions extends WaitOptions {
  /**
   * `"start"`: first what has happened so far, as far as it is known. A process keeps the last 10,000 events of its
   * own runs; for others it reads the event log, if the graph has an `eventLog`, and the last steps in the
   * checkpoint. `"now"` by default.
   */
  readonly from?: "start" | "now";
}

/** A handle of a run in this process, in another one, or in a worker. */
export interface RunHandle<D extends object = object> {
  /** The id of the run. */
  readonly runId: string;
  /**
   * Resolves when the run's first checkpoint is in the store; at once if the graph saves nothing. Rejects with the
   * run's error if it ends before that.
   */
  readonly saved: Promise<void>;
  /** The current state of the run. */
  status(): Promise<RunState>;
  /**
   * Waits until the run has stopped, and returns its State: `completed`, or `paused` if only the caller can resume
   * it. For a worker's run it keeps waiting through pauses.
   *
   * @throws ExecutionError if it failed, or was cancelled (code `ABORTED`).
   */
  result(options?: WaitOptions): Promise<State<D>>;
  /**
   * The events of the run until it stops. The run does not wait for its readers, and continues when they leave.
   *
   * @throws ConfigError if an option is invalid.
   */
  events(options?: EventsOptions): AsyncGenerator<AnyEvent, void, undefined>;
  /**
   * Stops the run so that it can be resumed. Resolves when it has stopped.
   *
   * @returns whether it is unfinished: `false` if it had completed, or there is no such run.
   * @throws CheckpointConflictError if it runs in another process that can't be reached from here.
   */
  cancel(): Promise<boolean>;
  /** Answers a pause of the run by name, even one that the run has not reached yet. See `graph.answer`. */
  answer(name: string, value: unknown): Promise<void>;
}
