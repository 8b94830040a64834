import {
  type ConfigError,
  type ErrorCode,
  ExecutionError,
  FatalError,
  isWaymarkError,
  RetryableError,
} from "../errors.js";
import { State } from "../state/state.js";
import type { ActiveRun } from "./active-run.js";

/** What is to become of a job, once its run has stopped here. */
export type Outcome =
  | { readonly kind: "completed" | "cancelled" | "handed-over" | "elsewhere" | "newer" }
  /** The claim was lost on the way, to another worker, or because this one hung or was cut off. */
  | { readonly kind: "lost" }
  /** It waits for a moment, or for input; `refused` says why the input it got was no good. */
  | { readonly kind: "paused"; readonly until?: number; readonly refused?: string }
  /** Without `retryAfter`, in milliseconds, it has failed for good. */
  | { readonly kind: "failed"; readonly error: unknown; readonly retryAfter?: number };

/** What a run has come to that went as far as it can. */
export function outcomeOf<D extends object>(state: State<D>): Outcome {
  if (state.status !== "paused") return { kind: "completed" };
  const moments = state.pauses.flatMap(({ until }) => (until === undefined ? [] : [until]));
  if (moments.length === 0) return { kind: "paused" };
  return { kind: "paused", until: Math.min(...moments.map((moment) => Date.parse(moment))) };
}

/** What these say stays true however often it is tried. */
const hopeless: ReadonlySet<ErrorCode> = new Set([
  "CONFIG",
  "SERIALIZATION",
  "MIGRATION",
  "CHECKPOINT_CORRUPT",
  "MAX_ITERATIONS",
  "NO_MATCHING_EDGE",
  "NODE_RESULT",
] as const);

/** Whether trying again is of no use. */
function isHopeless(error: unknown): boolean {
  if (error instanceof FatalError) return true;
  if (!isWaymarkError(error)) return false;
  return error.code.startsWith("GRAPH_") || hopeless.has(error.code);
}

/** What an error may ask for at most, in milliseconds. */
const MAX_WAIT = 24 * 60 * 60 * 1000;

/** The first wait before another try, and the longest, in milliseconds. */
export interface Backoff {
  readonly first: number;
  readonly longest: number;
}

/** What a run has come to that ended with an error. */
export function judge(
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
  if (isHopeless(error) || isHopeless(cause)) return { kind: "failed", error };
  const tries = triesOf(error);
  if (tries >= maxAttempts) return { kind: "failed", error };
  const wait = Math.min(backoff.first * 2 ** Math.max(tries - 1, 0), backoff.longest);
  const asked = cause instanceof RetryableError ? cause.retryAfter : undefined;
  const retryAfter = Math.ceil(asked ?? wait * (0.75 + Math.random() / 4));
  return { kind: "failed", error, retryAfter: Math.min(retryAfter, MAX_WAIT) };
}

/** How often the run was tried at this place. What is not the run's fault, such as a store out of reach, counts nothing. */
function triesOf(error: unknown): number {
  if (!(error instanceof ExecutionError)) return 0;
  const { state } = error;
  return state instanceof State ? (state.recovery?.attempts ?? 0) + 1 : 1;
}

/** Whether an error says that a paused run got no input, or the wrong one. */
export function isAboutInput(error: unknown): error is ConfigError {
  return isWaymarkError(error, "CONFIG") && /^input(\.|$)/.test(error.option);
}
