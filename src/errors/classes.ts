import { type ErrorState, WaymarkError } from "./base.js";
import type { CodeOf } from "./table.js";
import { show } from "./text.js";

export {
  CheckpointConflictError,
  CheckpointCorruptionError,
  CheckpointNotFoundError,
  type ClaimHolder,
  type ConflictReason,
  MigrationError,
  SerializationError,
} from "./checkpoint.js";
export { ChainError, type ItemError, ParallelError, RouteError } from "./nodes.js";
export { type ErrorState, WaymarkError };

/** What is wrong with a graph or its use: the codes of a {@link GraphError}. */
export type GraphErrorCode = CodeOf<"GraphError">;

/** Why an {@link ExecutionError} ended a run. */
export type ExecutionErrorCode = CodeOf<"ExecutionError" | "CheckpointSaveError">;

/**
 * A graph is invalid, or is not the graph that a checkpoint was made with.
 *
 * @example
 * ```ts
 * import { GraphError, StateGraph } from "waymark";
 *
 * try {
 *   new StateGraph<{ n: number }>().addNode("one", () => ({ n: 1 })).validate();
 * } catch (error) {
 *   if (error instanceof GraphError) console.log(error.code); // GRAPH_NO_ENTRY
 * }
 * ```
 */
export class GraphError extends WaymarkError {
  /** Which rule was broken. */
  declare readonly code: GraphErrorCode;

  /** @param code - which rule of graph building was broken. */
  constructor(code: GraphErrorCode, message: string) {
    super(code, message);
  }
}

/** The position of a run when an {@link ExecutionError} ended it. */
export interface ExecutionErrorOptions {
  /** The node that was running, or the last that did. */
  readonly nodeName: string;
  /** The State that the node received. */
  readonly state: ErrorState;
  /** The names of the nodes this call ran, oldest first; long runs keep the last 100. */
  readonly path: readonly string[];
  /** The error of the node, the predicate or the store; never wrapped. */
  readonly cause?: unknown;
}

/**
 * A run ended before an exit point. `cause` is the node's own error.
 *
 * @example
 * ```ts
 * import { ExecutionError, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>()
 *   .addNode("one", () => {
 *     throw new RangeError("too many stones");
 *   })
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 })).catch((error: unknown) => {
 *   if (!(error instanceof ExecutionError)) throw error;
 *   console.log(error.code, error.nodeName, error.path.join(), String(error.cause)); // NODE_FAILED one one RangeError: too many stones
 * });
 * ```
 */
export class ExecutionError extends WaymarkError {
  /** Why the run ended. */
  declare readonly code: ExecutionErrorCode;
  /** The node that was running, or the last that did. */
  readonly nodeName: string;
  /** The State that the node received. */
  readonly state: ErrorState;
  /** The names of the nodes this call ran, oldest first; long runs keep the last 100. */
  readonly path: readonly string[];

  /** @param code - why the run ended. */
  constructor(code: ExecutionErrorCode, message: string, options: ExecutionErrorOptions) {
    super(code, message, options.cause === undefined ? undefined : { cause: options.cause });
    this.nodeName = options.nodeName;
    this.state = options.state;
    this.path = options.path;
  }
}

/**
 * A checkpoint could not be saved. `state` is the State that is not in the store; `cause` is the store's error.
 *
 * @example
 * ```ts
 * import { CheckpointSaveError, MemoryStore, State, StateGraph } from "waymark";
 *
 * class FullStore extends MemoryStore {
 *   override async save(): Promise<never> {
 *     throw new Error("no space left");
 *   }
 * }
 * const graph = new StateGraph<{ n: number }>({ checkpoint: { store: new FullStore(), interval: 1 } })
 *   .addNode("one", () => ({ n: 1 }))
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 })).catch((error: unknown) => {
 *   if (error instanceof CheckpointSaveError) console.log(String(error.cause)); // Error: no space left
 * });
 * ```
 */
export class CheckpointSaveError extends ExecutionError {
  /** @param message - what failed and what to do. */
  constructor(message: string, options: ExecutionErrorOptions) {
    super("CHECKPOINT_SAVE", message, options);
  }
}

/**
 * An option or argument is invalid. The message names it, what it must be and what it got.
 *
 * @example
 * ```ts
 * import { ConfigError, StateGraph } from "waymark";
 *
 * try {
 *   new StateGraph({ maxIterations: -1 });
 * } catch (error) {
 *   if (error instanceof ConfigError) console.log(error.message); // config.maxIterations must be an integer ≥ 1 or Infinity; got -1
 * }
 * ```
 */
export class ConfigError extends WaymarkError {
  /** The option or argument, such as `checkpoint.interval`. */
  readonly option: string;

  /** @param option - its name, which starts the message; `problem` is the rest. */
  constructor(option: string, problem: string) {
    super("CONFIG", `${option} ${problem}`);
    this.option = option;
  }
}

/** One problem with a value. */
export interface SchemaIssue {
  /** Where it is, keys joined by dots; `""` for the value itself. */
  readonly path: string;
  /** What is wrong. */
  readonly message: string;
}

/**
 * Data, or the answer to a pause, does not fit its schema. Nothing was saved.
 *
 * @example
 * ```ts
 * import { SchemaError } from "waymark";
 *
 * const error = new SchemaError("data", [{ path: "score", message: "must be a number" }]);
 * console.log(error.code, error.message); // SCHEMA data does not fit its schema: score: must be a number
 * ```
 */
export class SchemaError extends WaymarkError {
  /** What was checked: `data`, `input`, or `input.approval` for one of several pauses. */
  readonly subject: string;
  /** Everything that is wrong. */
  readonly issues: readonly SchemaIssue[];

  /** @param subject - what was checked: `data`, `input`. */
  constructor(subject: string, issues: readonly SchemaIssue[]) {
    const problems = issues.map(({ path, message }) =>
      path === "" ? message : `${path}: ${message}`,
    );
    super("SCHEMA", `${subject} does not fit its schema: ${problems.join("; ")}`);
    this.subject = subject;
    this.issues = issues;
  }
}

/**
 * Nobody answered a pause in time.
 *
 * @example
 * ```ts
 * import { PauseTimeoutError } from "waymark";
 *
 * const error = new PauseTimeoutError("approval", "2030-01-01T00:00:00.000Z");
 * console.log(error.code, error.pause); // PAUSE_TIMEOUT approval
 * ```
 */
export class PauseTimeoutError extends WaymarkError {
  /** The name of the pause; `""` for one that a node returned. */
  readonly pause: string;
  /** When it timed out, ISO 8601. */
  readonly deadline: string;

  /** @param pause - its name; `deadline` is when it timed out. */
  constructor(pause: string, deadline: string) {
    const which = pause === "" ? "the pause" : `pause ${show(pause)}`;
    super("PAUSE_TIMEOUT", `${which} was not answered by ${deadline}`);
    this.pause = pause;
    this.deadline = deadline;
  }
}

/**
 * Thrown by a node to say that a retry is pointless.
 *
 * @example
 * ```ts
 * import { FatalError, State, StateGraph } from "waymark";
 *
 * let attempts = 0;
 * const graph = new StateGraph<{ n: number }>()
 *   .addNode(
 *     "one",
 *     () => {
 *       attempts++;
 *       throw new FatalError("wrong password");
 *     },
 *     { retry: { maxAttempts: 5 } },
 *   )
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * await graph.execute(State.create({ n: 0 })).catch(() => {});
 * console.log(attempts); // 1
 * ```
 */
export class FatalError extends Error {
  /** @param message - what is wrong; `options.cause` is the error behind this one. */
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "FatalError";
  }
}

/**
 * Thrown by a node to say that a retry is worthwhile, and when.
 *
 * @example
 * ```ts
 * import { RetryableError, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ n: number }>()
 *   .addNode(
 *     "one",
 *     (_state, { attempt }) => {
 *       if (attempt === 1) throw new RetryableError("busy", { retryAfter: 5 });
 *       return { n: attempt };
 *     },
 *     { retry: { maxAttempts: 2 } },
 *   )
 *   .setEntryPoint("one")
 *   .setExitPoint("one");
 * console.log((await graph.execute(State.create({ n: 0 }))).data.n); // 2
 * ```
 */
export class RetryableError extends Error {
  /** Milliseconds to wait, overriding the retry policy. */
  readonly retryAfter: number | undefined;

  /** @param options - `retryAfter` in milliseconds, and the `cause`. */
  constructor(message: string, options: { retryAfter?: number; cause?: unknown } = {}) {
    super(message, options);
    this.name = "RetryableError";
    this.retryAfter = options.retryAfter;
  }
}
