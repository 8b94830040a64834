import type { RunHandle } from "../run/handles/handle.js";

/**
 * The handle of a run that is, or was, in the queue. Returned by {@link Client.submit} and {@link Client.run}. Each
 * method throws a ConfigError if the client is closed, also while it waits, and a WaymarkError with the code `QUEUE` if
 * the queue can't be reached or does not respond within `connection.statementTimeout`.
 *
 * - `result` waits for the run's end, through pauses and restarts. If the run failed for good, it throws an
 *   ExecutionError whose `cause` has the name and message of the node's error; an error of the graph or its checkpoints
 *   is a WaymarkError with its own code.
 * - `events` are those of the queue, and those of the graph that the client's `log` has or, without one, that the
 *   worker's `events` option selects. With `from: "start"` what the log has so far comes first, and the saved steps that
 *   it does not have.
 * - `cancel` removes the run from the queue, or aborts the `signal` of its node within about a second. The run stays in
 *   the store, even if it has not begun, and {@link QueuedRun.resume} continues it from there.
 * - `answer` answers one pause of several, or a named one. An answer to a pause that the run has not reached yet is kept
 *   for it, unless a worker holds the run right now: then it throws a CheckpointConflictError.
 *
 * @example
 * ```ts compile
 * import { PostgresStore } from "waymark/stores/postgres";
 * import { Client } from "waymark/worker";
 *
 * const connection = "postgres://localhost/app";
 * const client = new Client({ connection, store: new PostgresStore({ client: connection }) });
 * const run = await client.submit("letter", { text: "" });
 *
 * for await (const event of run.events()) {
 *   if (event.type === "graph.pause") await run.answer("approval", true);
 * }
 * const { state } = await run.status();
 * await run.cancel();
 * ```
 */
export interface QueuedRun<D extends object = object> extends RunHandle<D> {
  /** The name of its graph. */
  readonly graph: string;
  /**
   * Continues the run: with the input it is paused for, or without if it only waits. A run that failed gets one more
   * attempt; one that was cancelled returns to the queue. Resolves when it is in the queue; `status` reports input that
   * the graph refused.
   *
   * @throws ConfigError if there is no such run, or there is input and the run is not paused.
   * @throws SerializationError if a checkpoint can't hold the input.
   */
  resume(input?: unknown): Promise<void>;
}
