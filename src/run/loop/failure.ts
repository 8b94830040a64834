import {
  CheckpointSaveError,
  ExecutionError,
  type ExecutionErrorCode,
  isWaymarkError,
  messageOf,
  show,
} from "../../errors.js";
import type { ProgressChanges } from "../../state/derive.js";
import type { State } from "../../state/state.js";

/** The reason a run ends early. Thrown only inside the loop; outside it is saved and becomes an error. */
export class Failure<D extends object> {
  readonly code: ExecutionErrorCode;
  /** The node that was running, or was about to. */
  readonly node: string;
  /** The State before that node; a resume continues from here. */
  readonly state: State<D>;
  readonly message: string;
  readonly cause: unknown;

  constructor(
    code: ExecutionErrorCode,
    node: string,
    state: State<D>,
    message: string,
    cause?: unknown,
  ) {
    this.code = code;
    this.node = node;
    this.state = state;
    this.message = message;
    this.cause = cause;
  }

  /** The same failure with a later State before the node, such as the one that was saved. */
  at(state: State<D>): Failure<D> {
    return new Failure(this.code, this.node, state, this.message, this.cause);
  }

  /** What the run's last State says of it: the run failed or, if it was only stopped, is still in progress. */
  toProgress(): ProgressChanges {
    const { code, node, cause, message } = this;
    if (code === "ABORTED") {
      return { status: "in_progress", error: undefined, reason: "abort", nextNode: node };
    }
    const [name, problem] =
      cause === undefined ? ["ExecutionError", message] : [errorName(cause), messageOf(cause)];
    const error = { name, message: cutMessage(problem), node, ...stackOf(cause) };
    // If no edge matched, a resume evaluates the edges again.
    const isAtEdge = code === "NO_MATCHING_EDGE" || code === "PREDICATE_FAILED";
    return {
      ...{ status: "failed", error: Object.freeze(error), reason: "failure" },
      nextNode: isAtEdge ? undefined : node,
    };
  }

  /** The error that a caller sees; `state` is the last State of the run. */
  toError(state: State<D>, path: readonly string[]): ExecutionError {
    const options = { nodeName: this.node, state, path, cause: this.cause };
    return this.code === "CHECKPOINT_SAVE"
      ? new CheckpointSaveError(this.message, options)
      : new ExecutionError(this.code, this.message, options);
  }
}

/** The abort reason of a drained run. */
export const DRAINS = "the graph drains";

/** The signals that can stop a node before it completes. */
export interface Stop {
  readonly signal: AbortSignal;
  readonly draining: AbortSignal;
}

/** Whether an error means that a node was stopped, not that it failed. */
export function isStop(error: unknown, { signal, draining }: Stop): boolean {
  // A node may have been running another graph, which was stopped with it.
  const isAbort =
    isWaymarkError(error, "ABORTED") ||
    (error instanceof Error && errorName(error) === "AbortError");
  return [signal, draining].some((one) => one.aborted && (error === one.reason || isAbort));
}

/** The failure of a node that threw. */
export function nodeFailed<D extends object>(
  state: State<D>,
  node: string,
  error: unknown,
): Failure<D> {
  if (error instanceof Failure) return error.at(state);
  return new Failure(
    "NODE_FAILED",
    node,
    state,
    `node ${show(node)} failed: ${messageOf(error)}${mutationHint(error)}`,
    error,
  );
}

/** What JavaScript engines report when frozen data is modified. */
const mutations =
  /read.?only property|object is not extensible|Cannot (?:add|delete|define) property|not configurable|Attempted to assign to readonly/i;

/** A hint for a node that tried to change the State in place. */
function mutationHint(error: unknown): string {
  const inner = innermost(error);
  if (!(inner instanceof TypeError) || !mutations.test(messageOf(inner))) return "";
  return ". State data is frozen: to change it, use state.update or return new values";
}

/** The error for the caller if no run was in progress. */
export function outsideRun(error: unknown): unknown {
  return error instanceof Failure ? error.toError(error.state, []) : error;
}

/** The run was cancelled. */
export function aborted<D extends object>(
  state: State<D>,
  node: string,
  reason: unknown,
): Failure<D> {
  return new Failure(
    "ABORTED",
    node,
    state,
    `the run was cancelled before ${show(node)} completed`,
    reason,
  );
}

/**
 * What a predicate or a trigger decides about a State.
 *
 * @throws Failure if it throws, or does not return true or false.
 */
export function decided<D extends object, T>(
  asked: T,
  ask: (asked: T, state: State<D>) => unknown,
  nameOf: (asked: T) => string,
  state: State<D>,
  node: string,
): boolean {
  let problem: string;
  let cause: unknown;
  try {
    const result = ask(asked, state);
    if (typeof result === "boolean") return result;
    problem = `must return true or false; got ${show(result)}`;
  } catch (error) {
    problem = `failed: ${messageOf(error)}`;
    cause = error;
  }
  throw new Failure("PREDICATE_FAILED", node, state, `the ${nameOf(asked)} ${problem}`, cause);
}

/** The run has used up its iterations. */
export function tooLong<D extends object>(state: State<D>, node: string): Failure<D> {
  const message = `the run has completed ${state.step} nodes, as many as config.maxIterations allows: raise it, or end the cycle`;
  return new Failure("MAX_ITERATIONS", node, state, message);
}

/** The maximum length of a stack or a message in a checkpoint, in characters. */
const MAX_TEXT = 4000;

/** An error's stack, cut to the maximum length; nothing if it has none. */
function stackOf(error: unknown): { readonly stack?: string } {
  try {
    const stack: unknown = error instanceof Error ? error.stack : undefined;
    return typeof stack === "string" ? { stack: stack.slice(0, MAX_TEXT) } : {};
  } catch {
    return {};
  }
}

/** A message, cut to the maximum length. */
function cutMessage(message: string): string {
  const more = message.length - MAX_TEXT;
  return more > 0 ? `${message.slice(0, MAX_TEXT)}… (${more} more characters)` : message;
}

/** An error's name; always a string, even if the error's own is not. */
export function errorName(error: unknown): string {
  try {
    return error instanceof Error && typeof error.name === "string" ? error.name : "Error";
  } catch {
    return "Error";
  }
}

/** The original error inside those that chain, parallel, route and subgraph wrap around it. */
export function innermost(error: unknown): unknown {
  let inner = error;
  while (isWaymarkError(inner) && inner.cause !== undefined) inner = inner.cause;
  return inner;
}
