import { FatalError, isWaymarkError, messageOf, RetryableError, show } from "../errors.js";
import type { NodeContext, NodeFunction, NodeResult } from "../graph/node.js";
import {
  type Check,
  callable,
  check,
  checkOptions,
  duration,
  integer,
  number,
  text,
  timeLimit,
} from "../options.js";
import { random } from "../random.js";
import { isSchema, type StandardSchema } from "../state/schema.js";
import type { State } from "../state/state.js";
import type { RunContext } from "./context.js";
import { innermost, isStop } from "./failure.js";
import { PauseRequested } from "./pauses.js";
import { within } from "./timeout.js";

/** When and how often a failed node is retried. */
export interface RetryPolicy {
  /** The total number of attempts; 3 by default, `Infinity` allowed. */
  readonly maxAttempts?: number;
  /**
   * The delay before the second attempt, in milliseconds; 1000 by default. Each delay is shortened by up to half at
   * random.
   */
  readonly initialInterval?: number;
  /** The factor by which each delay grows; 2 by default, at least 1. */
  readonly backoff?: number;
  /** The longest delay, in milliseconds; 60,000 by default. */
  readonly maxInterval?: number;
  /** Whether to retry after this error; by default after all but a FatalError. */
  readonly retryIf?: (error: unknown, attempt: number) => boolean;
}

/** Options of a node; `R` is what its error handler returns. */
export interface NodeOptions<D extends object, R = NodeResult<D> | Promise<NodeResult<D>>> {
  /** Retries the node when it fails; no retries by default. */
  readonly retry?: RetryPolicy;
  /**
   * The time limit of an attempt, in milliseconds: `context.signal` aborts and the attempt fails. No limit by default.
   */
  readonly timeout?: number;
  /**
   * Called after the last attempt failed. Its return value is the node's result; an error it throws is the node's
   * error.
   */
  readonly errorHandler?: (error: unknown, state: State<D>, context: NodeContext<D>) => R;
  /**
   * The phase that the node belongs to, such as `research`: shown in checkpoints, listings and reports, and counted by
   * `keepPerPhase`.
   */
  readonly phase?: string;
  /**
   * Validates the input that answers a pause of this node: any Standard Schema, such as one of zod or valibot; an
   * object of schemas by name for several pauses.
   */
  readonly input?: StandardSchema | Readonly<Record<string, StandardSchema>>;
}

/** Throws if the value is not a retry policy. */
export const checkRetry: Check = (name, value) =>
  checkOptions(name, value, {
    maxAttempts: integer(1, true),
    initialInterval: duration,
    backoff: number(1),
    maxInterval: duration,
    retryIf: callable,
  });

/** Throws if the value is not a node's options. */
export function checkNodeOptions(node: string, options: unknown): void {
  checkOptions(`node ${show(node)}`, options, {
    retry: checkRetry,
    timeout: timeLimit,
    errorHandler: callable,
    phase: text,
    input: check(
      "a Standard Schema, or several by name",
      (value) =>
        isSchema(value) ||
        (typeof value === "object" && value !== null && Object.values(value).every(isSchema)),
    ),
  });
}

/** Wraps a node in the retries, the timeout and the error handler of its options. */
export function withOptions<D extends object>(
  node: NodeFunction<D>,
  options: NodeOptions<D>,
): NodeFunction<D> {
  const { retry, timeout, errorHandler } = options;
  if (retry === undefined && timeout === undefined && errorHandler === undefined) return node;
  return async (given, context) => {
    const visit = context as RunContext<D>;
    let state = given;
    for (let attempt = 1 + (await visit.attemptsBefore()); ; attempt++) {
      try {
        await visit.checkClaim();
        return await attemptOnce(node, state, visit, attempt, timeout);
      } catch (error) {
        const isOver = error instanceof PauseRequested || visit.isOver || visit.signal.aborted;
        if (isOver || isStop(error, visit)) throw error;
        visit.attemptFailed();
        const delayMs = retryDelay(error, attempt, retry);
        state = await visit.stateSoFar();
        if (delayMs !== undefined) {
          visit.emit("node.retry", {
            node: visit.node,
            step: visit.step,
            attempt,
            error: messageOf(error),
            cause: error,
            delayMs,
          });
          await visit.attempted(attempt, visit.signal).waitForRetry(delayMs);
        } else if (errorHandler === undefined) {
          throw error;
        } else {
          return errorHandler(error, state, visit.attempted(attempt, visit.signal));
        }
      }
    }
  };
}

async function attemptOnce<D extends object>(
  node: NodeFunction<D>,
  state: State<D>,
  visit: RunContext<D>,
  attempt: number,
  timeout: number | undefined,
): Promise<NodeResult<D>> {
  if (timeout === undefined) return node(state, visit.attempted(attempt, visit.signal));
  return within(timeout, `node ${show(visit.node)}`, visit.signal, (signal) =>
    node(state, visit.attempted(attempt, signal)),
  );
}

/** The delay before the next attempt, in milliseconds; `undefined` if there is none. */
export function retryDelay(
  error: unknown,
  attempt: number,
  retry: RetryPolicy | undefined,
): number | undefined {
  if (retry === undefined) return undefined;
  const { maxAttempts = 3, retryIf = () => true } = retry;
  const inner = innermost(error);
  const isLast = attempt >= maxAttempts || isFinal(inner);
  return isLast || !asks(retryIf, error, attempt) ? undefined : waitBefore(inner, attempt, retry);
}

/** Whether a retry would be pointless. */
function isFinal(error: unknown): boolean {
  return error instanceof FatalError || isWaymarkError(error, "PAUSE_TIMEOUT");
}

/** The result of `retryIf`. If it fails itself, there is no retry: the caller must see the node's own error. */
function asks(
  retryIf: NonNullable<RetryPolicy["retryIf"]>,
  error: unknown,
  attempt: number,
): boolean {
  try {
    return retryIf(error, attempt);
  } catch {
    return false;
  }
}

/** Exponential, shortened by up to half at random, so that many runs don't retry at once. */
function waitBefore(error: unknown, attempt: number, policy: RetryPolicy): number {
  const { retryAfter = -1 } = error instanceof RetryableError ? error : {};
  // An invalid delay, such as an unparsable header, leaves the decision to the policy.
  if (retryAfter >= 0) return retryAfter;
  const { initialInterval = 1000, backoff = 2, maxInterval = 60_000 } = policy;
  const factor = Math.min(backoff ** (attempt - 1), Number.MAX_VALUE);
  const full = Math.min(initialInterval * factor, maxInterval);
  return full * (1 - random() / 2);
}
