import type { CheckpointStore } from "../checkpoint/store.js";
import { ConfigError, PauseTimeoutError, show } from "../errors.js";
import { progressOf, withProgress } from "../state/derive.js";
import { encode } from "../state/encode.js";
import { freezeCopy } from "../state/freeze-copy.js";
import type { Signal } from "../state/record.js";
import type { State } from "../state/state.js";
import { claimOf } from "./claim.js";
import { isExpired } from "./pauses.js";

/** The number of answers that a run keeps for pauses it has not reached yet. */
const MOST_SIGNALS = 100;

/** @throws ConfigError if a run has no room for another answer. */
export function checkRoom(runId: string, signals: readonly Signal[]): void {
  if (signals.length < MOST_SIGNALS) return;
  const problem = `can't be kept: run ${show(runId)} has ${MOST_SIGNALS} that no pause has taken`;
  throw new ConfigError("signal", problem);
}

/**
 * Creates a signal as a checkpoint stores it.
 *
 * @throws SerializationError if a checkpoint can't hold the value.
 */
export function toSignal(name: string, value: unknown): Signal {
  const kept: unknown = freezeCopy(value);
  encode(kept, "value");
  return Object.freeze({ name, value: kept });
}

/**
 * A State of a run that nobody works on, with an answer for one of its pauses.
 *
 * @throws ConfigError if the run has completed, or has too many unused answers.
 * @throws PauseTimeoutError if the pause has timed out.
 */
export function withSignal<D extends object>(state: State<D>, signal: Signal): State<D> {
  const { pauses, signals } = progressOf(state);
  const { runId, status } = state;
  if (status === "completed") {
    throw new ConfigError("signal", `was given, but run ${show(runId)} is completed`);
  }
  const asked = pauses.find(({ name }) => name === signal.name);
  if (asked !== undefined && isExpired(asked)) {
    throw new PauseTimeoutError(asked.name, asked.deadline);
  }
  checkRoom(runId, signals);
  return withProgress(state, { signals: Object.freeze([...signals, signal]) });
}

/**
 * Keeps an answer for a run that nobody works on, without needing its graph.
 *
 * @throws CheckpointConflictError if a process works on the run.
 * @throws CheckpointNotFoundError if it is not in the store.
 */
export async function keepSignal(
  store: CheckpointStore,
  runId: string,
  signal: Signal,
): Promise<State<object>> {
  return changeRun(store, runId, (state) => withSignal(state, signal));
}

/**
 * Changes and saves a run that nobody works on, without needing its graph.
 *
 * @throws CheckpointConflictError if a process works on the run.
 * @throws CheckpointNotFoundError if it is not in the store.
 */
export async function changeRun<D extends object>(
  store: CheckpointStore,
  runId: string,
  change: (state: State<D>) => State<D>,
): Promise<State<D>> {
  const claim = await claimOf(store, runId);
  try {
    return await store.save(change(await store.load<D>(runId)));
  } finally {
    await claim?.release().catch(() => {});
  }
}
