import type { CheckpointStore } from "../checkpoint/store.js";
import { ConfigError, PauseTimeoutError, show } from "../errors.js";
import { progressOf, withProgress } from "../state/derive.js";
import { encode } from "../state/encode.js";
import { freezeCopy } from "../state/freeze-copy.js";
import type { Signal } from "../state/record.js";
import type { State } from "../state/state.js";
import { claimOf } from "./claim.js";
import { isExpired } from "./pauses.js";

/** How many answers a run keeps for pauses that it has not asked yet. */
const MOST_SIGNALS = 100;

/** @throws ConfigError if a run keeps as many answers as it can. */
export function checkRoom(runId: string, signals: readonly Signal[]): void {
  if (signals.length < MOST_SIGNALS) return;
  const problem = `can't be kept: run ${show(runId)} has ${MOST_SIGNALS} that no pause has taken`;
  throw new ConfigError("signal", problem);
}

/**
 * A signal as a checkpoint keeps it.
 *
 * @throws SerializationError if a checkpoint can't hold the value.
 */
export function toSignal(name: string, value: unknown): Signal {
  const kept: unknown = freezeCopy(value);
  encode(kept, "value");
  return Object.freeze({ name, value: kept });
}

/**
 * A State of a run that nobody works on, with an answer kept for one of its pauses.
 *
 * @throws ConfigError if the run has completed, or keeps too many already.
 * @throws PauseTimeoutError if the time of the pause is up.
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
 * Keeps an answer for a run that nobody works on, without its graph.
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
 * Saves a run that nobody works on with a change, without its graph.
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
