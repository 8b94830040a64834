import type { AnyEvent } from "../events.js";
import { abortSignal, checkOptions, oneOf } from "../options.js";
import type { PauseRequest } from "../state/record.js";
import type { State } from "../state/state.js";

/** What a run does, or how it ended. */
export interface RunState {
  /**
   * - `waiting`: for a worker; `running`: a process works on it;
   * - `delayed`: until a moment, or its next try; `paused`: until it is resumed;
   * - `completed`, `failed`;
   * - `cancelled`: it is in the store, unfinished, and nobody works on it;
   * - `unknown`: no such run.
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
  /** The message of the last error, if it failed, even if it is tried again. */
  readonly error?: string;
  /** Why the last input was refused. */
  readonly refused?: string;
}

/** Options of {@link RunHandle.result}. @inline */
export interface WaitOptions {
  /** Stops waiting. The run continues. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of {@link RunHandle.events}. @inline */
export interface EventsOptions extends WaitOptions {
  /**
   * `"start"`: first what has happened so far, as far as it is known. A process remembers the last 10,000
   * events of its own runs; of others it reads the event log, if the graph has an `eventLog`, and the last steps
   * in the checkpoint. `"now"` by default.
   */
  readonly from?: "start" | "now";
}

/** A run that proceeds by itself: in this process, in another one, or in a worker. */
export interface RunHandle<D extends object = object> {
  /** Names the run. */
  readonly runId: string;
  /**
   * Resolves when the run's first checkpoint is in the store; at once if the graph saves nothing.
   * Rejects with the run's error if it ended before.
   */
  readonly saved: Promise<void>;
  /** What the run does now. */
  status(): Promise<RunState>;
  /**
   * Waits until the run has stopped, and gives its State: `completed`, or `paused` where nobody but the
   * caller can resume it. A worker's run is waited for through its pauses.
   *
   * @throws ExecutionError if it failed, or was cancelled (code `ABORTED`).
   */
  result(options?: WaitOptions): Promise<State<D>>;
  /**
   * What happens to the run until it stops. The run does not wait for its readers, and continues when
   * they leave.
   *
   * @throws ConfigError if an option is invalid.
   */
  events(options?: EventsOptions): AsyncGenerator<AnyEvent, void, undefined>;
  /**
   * Stops the run so that it can be resumed. Resolves when it has stopped.
   *
   * @returns whether it is unfinished: `false` if it had completed, or there is no such run.
   * @throws CheckpointConflictError if another process works on it that can't be reached from here.
   */
  cancel(): Promise<boolean>;
  /**
   * Answers a pause of the run by its name, also one that the run has not asked yet. See
   * {@link StateGraph.signal}.
   */
  signal(name: string, value: unknown): Promise<void>;
}

const waitChecks = { signal: abortSignal };
const eventsChecks = { ...waitChecks, from: oneOf("start", "now") };

/** Refuses what {@link RunHandle.result} does not take. */
export function checkWaitOptions(options: WaitOptions): void {
  checkOptions("options", options, waitChecks);
}

/** Refuses what {@link RunHandle.events} does not take. */
export function checkEventsOptions(options: EventsOptions): void {
  checkOptions("options", options, eventsChecks);
}
