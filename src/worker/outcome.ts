import {
  type ConfigError,
  ExecutionError,
  errorTable,
  FatalError,
  isWaymarkError,
  RetryableError,
  type SchemaError,
} from "../errors.js";
import { random } from "../random.js";
import { progressOf } from "../state/derive.js";
import { State } from "../state/state.js";
import type { ActiveRun } from "./active-run.js";

/** What to do with a job after its run has stopped here. */
export type Outcome =
  | { readonly kind: "completed" | "cancelled" | "handed-over" | "elsewhere" | "newer" }
  /** The claim was lost, to another worker, or because this one hung or was cut off. */
  | { readonly kind: "lost" }
  /** It waits for a time, or for input; `refused` is the reason why its input was refused. */
  | { readonly kind: "paused"; readonly until?: number; readonly refused?: string }
  /** Without `retryAfter`, in milliseconds, it has failed for good. */
  | { readonly kind: "failed"; readonly error: unknown; readonly retryAfter?: number };

/** The outcome of a run that stopped without an error. */
export function outcomeOf<D extends object>(state: State<D>): Outcome {
  if (state.status !== "paused") return { kind: "completed" };
  const moments = state.pauses.flatMap(({ until, deadline }) => [until, deadline]);
  const times = moments.flatMap((moment) => (moment === undefined ? [] : [Date.parse(moment)]));
  return times.length === 0 ? { kind: "paused" } : { kind: "paused", until: Math.min(...times) };
}

/** Whether a retry would be pointless. */
function isPermanent(error: unknown): boolean {
  if (error instanceof FatalError) return true;
  return isWaymarkError(error) && errorTable[error.code]?.permanent === true;
}

/** The longest delay that an error may request, in milliseconds. */
const MAX_WAIT = 24 * 60 * 60 * 1000;

/** The first and the longest delay before a retry, in milliseconds. */
export interface Backoff {
  readonly first: number;
  readonly longest: number;
}

/** The outcome of a run that stopped with an error. */
export function classifyFailure(
  error: unknown,
  run: Pick<ActiveRun, "why" | "isLost">,
  maxAttempts: number,
  backoff: Backoff,
): Outcome {
  if (run.isLost) return { kind: "lost" };
  if (isWaymarkError(error, "CHECKPOINT_CONFLICT")) return { kind: "elsewhere" };
  if (run.why === "cancel") return { kind: "cancelled" };
  if (isWaymarkError(error, "ABORTED")) return { kind: "handed-over" };
  if (isWaymarkError(error, "MIGRATION") && error.from > error.to) return { kind: "newer" };
  const cause: unknown = error instanceof ExecutionError ? error.cause : undefined;
  if (isPermanent(error) || isPermanent(cause)) return { kind: "failed", error };
  const tries = triesOf(error);
  if (tries >= maxAttempts) return { kind: "failed", error };
  const wait = Math.min(backoff.first * 2 ** Math.max(tries - 1, 0), backoff.longest);
  const asked = cause instanceof RetryableError ? cause.retryAfter : undefined;
  const retryAfter = Math.ceil(asked ?? wait * (0.75 + random() / 4));
  return { kind: "failed", error, retryAfter: Math.min(retryAfter, MAX_WAIT) };
}

/**
 * How often the run was tried at this point. Failures that are not the run's fault, such as an unreachable store, don't
 * count.
 */
function triesOf(error: unknown): number {
  if (!(error instanceof ExecutionError)) return 0;
  const { state } = error;
  return state instanceof State ? (progressOf(state).recovery?.attempts ?? 0) + 1 : 1;
}

/** Whether an error means that a paused run got no input, or invalid input. */
export function isAboutInput(error: unknown): error is ConfigError | SchemaError {
  if (isWaymarkError(error, "SCHEMA")) return isInput(error.subject);
  return isWaymarkError(error, "CONFIG") && isInput(error.option);
}

function isInput(name: string): boolean {
  return name === "input" || name.startsWith("input.");
}
