import { timeoutError, unlessLate } from "../../clock.js";
import { abortWith } from "../../concurrency.js";
import {
  ExecutionError,
  FatalError,
  isWaymarkError,
  messageOf,
  RetryableError,
  show,
} from "../../errors.js";
import type { EventMap } from "../../event-map.js";
import type { NodeContext, NodeFunction, NodeResult, RetryPolicy } from "../../graph/node.js";
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
} from "../../options.js";
import { random } from "../../random.js";
import { isSchema, type StandardSchema } from "../../state/schema.js";
import type { State } from "../../state/state.js";
import { innermost, isStop } from "../loop/failure.js";
import { PauseRequested } from "../pauses/pauses.js";
import type { RunContext } from "./context.js";

/** Options of a node; `R` is what its error handler returns. */
export interface NodeOptions<D extends object, R = NodeResult<D> | Promise<NodeResult<D>>> {
  /** Retries the node when it fails, or each item of its `parallel`; no retries by default. */
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
  } satisfies Record<keyof RetryPolicy, Check>);

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
  } satisfies Record<keyof NodeOptions<object>, Check>);
}

/** Wraps a node in the retries, the timeout and the error handler of its options. */
export function withOptions<D extends object>(
  name: string,
  node: NodeFunction<D>,
  { retry, timeout, errorHandler }: NodeOptions<D>,
): NodeFunction<D> {
  if (retry === undefined && timeout === undefined && errorHandler === undefined) return node;
  const tries: Tries<D, State<D>, NodeResult<D>> = {
    ...{ name: `node ${show(name)}`, retry, timeout, action: node, givenUp: errorHandler },
    failed: (own) => own.attemptFailed(),
    retried: (own, data) => own.emit("node.retry", { node: own.node, step: own.step, ...data }),
  };
  return (state, context) => attempts(context as RunContext<D>, state, tries);
}

/** An attempt that is followed by another one. */
export type FailedAttempt = Pick<EventMap["node.retry"], "attempt" | "error" | "cause" | "delayMs">;

/** What is tried, how often and for how long; `I` is what an attempt is given. */
interface Tries<D extends object, I, T> {
  /** For the error of an attempt that takes too long. */
  readonly name: string;
  readonly retry: RetryPolicy | undefined;
  readonly timeout: number | undefined;
  readonly action: (given: I, attempt: RunContext<D>) => T | Promise<T>;
  /** Awaited after each failure; what the next attempt is given. */
  readonly failed?: (context: RunContext<D>) => Promise<I>;
  /** Called before the wait for the next attempt. */
  readonly retried: (context: RunContext<D>, data: FailedAttempt) => void;
  /** Called after the last attempt failed; without it, its error is thrown. */
  readonly givenUp?:
    | ((error: unknown, given: I, attempt: RunContext<D>) => T | Promise<T>)
    | undefined;
}

/** Tries a node, or an item of its list, until it succeeds, is stopped or has had its attempts. */
export async function attempts<D extends object, I, T>(
  context: RunContext<D>,
  first: I,
  tries: Tries<D, I, T>,
): Promise<T> {
  const { name, retry, timeout, action, failed, retried, givenUp } = tries;
  const before = context.attemptsBefore();
  let given = first;
  for (let number = 1 + (typeof before === "number" ? before : await before); ; number++) {
    // A lost claim has aborted the run.
    const checking = context.run.control.verify();
    if (checking !== undefined) await checking;
    const attempt = context.attempted(number, retry);
    try {
      if (timeout === undefined) return await action(given, attempt);
      return await within(timeout, name, context.signal, startOf(action, given, attempt));
    } catch (error) {
      const isOver = error instanceof PauseRequested || context.isOver || context.signal.aborted;
      if (isOver || isStop(error, context)) throw error;
      attempt.end();
      if (failed !== undefined) given = await failed(context);
      const delayMs = retryDelay(error, number, retry);
      const after = context.attempted(number, retry);
      if (delayMs !== undefined) {
        retried(context, { attempt: number, error: messageOf(error), cause: error, delayMs });
        await after.waitForRetry(delayMs);
      } else {
        if (givenUp === undefined) throw error;
        return givenUp(error, given, after);
      }
    }
  }
}

/** Apart from the loop, where a closure would cost every attempt. */
function startOf<D extends object, I, T>(
  action: Tries<D, I, T>["action"],
  given: I,
  attempt: RunContext<D>,
): (signal: AbortSignal) => T | Promise<T> {
  return (signal) => action(given, attempt.stoppedBy(signal));
}

/**
 * Limits an action to this many milliseconds; then its signal aborts and it fails. An action that ignores its signal is
 * abandoned: its result, if there ever is one, is ignored.
 */
export async function within<T>(
  ms: number,
  what: string,
  outer: AbortSignal,
  action: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const unlink = abortWith(controller, outer);
  const late = (): never => {
    const error = timeoutError(what, ms);
    controller.abort(error);
    throw error;
  };
  try {
    const acting = Promise.resolve(controller.signal).then(action);
    return await unlessLate(acting, ms, late);
  } finally {
    unlink();
  }
}

/** The delay before the next attempt, in milliseconds; `undefined` if there is none. */
function retryDelay(
  error: unknown,
  attempt: number,
  retry: RetryPolicy | undefined,
): number | undefined {
  if (retry === undefined) return undefined;
  const { maxAttempts = 3, retryIf = () => true } = retry;
  const inner = innermost(error);
  const isFinal = inner instanceof FatalError || isWaymarkError(inner, "PAUSE_TIMEOUT");
  const isLast = attempt >= maxAttempts || isFinal || hadAttempts(error);
  return isLast || !asks(retryIf, error, attempt) ? undefined : waitBefore(inner, attempt, retry);
}

/** Whether an error is that of items, which have had their attempts; those of an inner run had other ones. */
function hadAttempts(error: unknown): boolean {
  let outer = error;
  while (isWaymarkError(outer) && !(outer instanceof ExecutionError)) {
    if (outer.code === "PARALLEL_FAILED") return true;
    outer = outer.cause;
  }
  return false;
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
