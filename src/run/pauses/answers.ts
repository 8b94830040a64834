import type { CheckpointStore } from "../../checkpoint/store.js";
import { ConfigError, PauseTimeoutError, show } from "../../errors.js";
import { progressOf, withProgress } from "../../state/derive.js";
import { encode } from "../../state/encode.js";
import { freezeCopy } from "../../state/freeze-copy.js";
import type { Answer } from "../../state/pauses.js";
import type { State } from "../../state/state.js";
import { claimOf } from "../loop/control.js";
import { isExpired } from "./pauses.js";

/** The number of answers that a run keeps for pauses it has not reached yet. */
const MOST_ANSWERS = 100;

/** @throws ConfigError if a run has no room for another answer. */
export function checkRoom(runId: string, answers: readonly Answer[]): void {
  if (answers.length < MOST_ANSWERS) return;
  const problem = `can't be kept: run ${show(runId)} has ${MOST_ANSWERS} that no pause has taken`;
  throw new ConfigError("answer", problem);
}

/**
 * Creates a answer as a checkpoint stores it.
 *
 * @throws SerializationError if a checkpoint can't hold the value.
 */
export function toAnswer(name: string, value: unknown): Answer {
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
export function withAnswer<D extends object>(state: State<D>, answer: Answer): State<D> {
  const { pauses, answers } = progressOf(state);
  const { runId, status } = state;
  if (status === "completed") {
    throw new ConfigError("answer", `was given, but run ${show(runId)} is completed`);
  }
  const asked = pauses.find(({ name }) => name === answer.name);
  if (asked !== undefined && isExpired(asked)) {
    throw new PauseTimeoutError(asked.name, asked.deadline);
  }
  checkRoom(runId, answers);
  return withProgress(state, { answers: Object.freeze([...answers, answer]) });
}

/**
 * Keeps an answer for a run that nobody works on, without needing its graph.
 *
 * @throws CheckpointConflictError if a process works on the run.
 * @throws CheckpointNotFoundError if it is not in the store.
 */
export async function keepAnswer(
  store: CheckpointStore,
  runId: string,
  answer: Answer,
): Promise<State<object>> {
  return changeRun(store, runId, (state) => withAnswer(state, answer));
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
