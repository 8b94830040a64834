/** What a {@link GraphError} says is wrong with a graph, or with how it was used. */
export type GraphErrorCode =
  | "GRAPH_NODE_NAME"
  | "GRAPH_NODE_DUPLICATE"
  | "GRAPH_NODE_FUNCTION"
  | "GRAPH_NODE_UNKNOWN"
  | "GRAPH_NODE_UNREACHABLE"
  | "GRAPH_NODE_DEAD_END"
  | "GRAPH_PREDICATE"
  | "GRAPH_ENTRY_DUPLICATE"
  | "GRAPH_NO_NODES"
  | "GRAPH_NO_ENTRY"
  | "GRAPH_NO_EXIT"
  | "GRAPH_CYCLE"
  | "GRAPH_STATE"
  | "GRAPH_MISMATCH";

/** Why an {@link ExecutionError} ended a run. */
export type ExecutionErrorCode =
  | "NODE_FAILED"
  | "NODE_RESULT"
  | "PREDICATE_FAILED"
  | "NO_MATCHING_EDGE"
  | "MAX_ITERATIONS"
  | "ABORTED"
  | "CHECKPOINT_SAVE";

/** Why a node that `chain`, `parallel` or `route` made has failed. */
export type NodeErrorCode =
  | "CHAIN_FAILED"
  | "PARALLEL_FAILED"
  | "ROUTE_CHOICE"
  | "ROUTE_UNKNOWN"
  | "ROUTE_FAILED";

/** Every code an error of waymark can carry. Codes are stable: match on them, not on messages. */
export type ErrorCode =
  | GraphErrorCode
  | ExecutionErrorCode
  | NodeErrorCode
  | "CHECKPOINT_NOT_FOUND"
  | "CHECKPOINT_CORRUPT"
  | "CHECKPOINT_CONFLICT"
  | "SERIALIZATION"
  | "MIGRATION"
  | "CONFIG";

/** Marks the errors of every copy of this package. */
const brand = Symbol.for("waymark.error");

/** The part of a State that an error carries; it is the whole State, typed loosely. */
export interface ErrorState {
  /** The run. */
  readonly runId: string;
  /** The last node that completed. */
  readonly checkpointNode: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** The data. */
  readonly data: object;
}

/**
 * The base of every error waymark throws on purpose.
 *
 * @example
 * ```ts
 * import { WaymarkError, getCheckpointStore } from "waymark";
 *
 * try {
 *   getCheckpointStore("tape");
 * } catch (error) {
 *   if (error instanceof WaymarkError) console.log(error.code, error.help); // CONFIG guide/troubleshooting.md#config
 * }
 * ```
 */
export class WaymarkError extends Error {
  /** @internal */
  readonly [brand] = true;
  /** A stable string that names the kind of mistake. */
  readonly code: ErrorCode;
  /** Where this package says what the code means and what to do: `guide/troubleshooting.md#config`. */
  readonly help: string;

  /** @param code - what went wrong; `options.cause` is the error behind this one. */
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    // A field, not a getter: whatever prints an error prints its fields.
    this.help = `guide/troubleshooting.md#${code.toLowerCase()}`;
  }
}

/**
 * A graph is built wrongly, or is not the graph that a checkpoint was made with.
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

/** Where a run stood when an {@link ExecutionError} ended it. */
export interface ExecutionErrorOptions {
  /** The node that was running, or the last that did. */
  readonly nodeName: string;
  /** The State that the node was given, as it was left in the store. */
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
  /** The State that the node was given. */
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
 * The store has no such run, or the run has no such checkpoint.
 *
 * @example
 * ```ts
 * import { CheckpointNotFoundError, MemoryStore } from "waymark";
 *
 * await new MemoryStore().load("gone").catch((error: unknown) => {
 *   if (error instanceof CheckpointNotFoundError) console.log(error.runId); // gone
 * });
 * ```
 */
export class CheckpointNotFoundError extends WaymarkError {
  /** The run that was asked for. */
  readonly runId: string;

  /** @param detail - what of the run was asked for, such as `at step 3`; nothing for the run itself. */
  constructor(runId: string, detail = "") {
    const what = detail === "" ? "has no checkpoint" : `has no checkpoint ${detail}`;
    super("CHECKPOINT_NOT_FOUND", `run ${JSON.stringify(runId)} ${what} in this store`);
    this.runId = runId;
  }
}

/**
 * A checkpoint is not what was written: its bytes, its hash or its shape are wrong.
 *
 * @example
 * ```ts
 * import { CheckpointCorruptionError } from "waymark";
 *
 * const error = new CheckpointCorruptionError("checkpoint_0001.json is corrupt", {
 *   expected: "sha256 aa",
 *   actual: "sha256 bb",
 * });
 * console.log(error.code, error.expected, error.actual); // CHECKPOINT_CORRUPT sha256 aa sha256 bb
 * ```
 */
export class CheckpointCorruptionError extends WaymarkError {
  /** What was to be there, such as a hash. */
  readonly expected: string;
  /** What was there. */
  readonly actual: string;

  /** @param message - which checkpoint it is and where it lies. */
  constructor(message: string, options: { expected: string; actual: string; cause?: unknown }) {
    super("CHECKPOINT_CORRUPT", message, "cause" in options ? { cause: options.cause } : undefined);
    this.expected = options.expected;
    this.actual = options.actual;
  }
}

/**
 * Another writer saved this run first. The State that lost is not in the store.
 *
 * @example
 * ```ts
 * import { CheckpointConflictError, MemoryStore, State } from "waymark";
 *
 * const store = new MemoryStore();
 * const state = await State.create({ n: 0 }).checkpoint(store);
 * await state.set("n", 1).checkpoint(store);
 * await state.set("n", 2).checkpoint(store).catch((error: unknown) => {
 *   if (error instanceof CheckpointConflictError) console.log(error.expected, error.actual); // 1 2
 * });
 * ```
 */
export class CheckpointConflictError extends WaymarkError {
  /** The run that two writers wanted. */
  readonly runId: string;
  /** The sequence that the loser built on. */
  readonly expected: number;
  /** The sequence that the store is at. */
  readonly actual: number;

  /** @param expected - the sequence the State was built on; `actual` is where the store is. */
  constructor(runId: string, expected: number, actual: number) {
    super(
      "CHECKPOINT_CONFLICT",
      expected === 0
        ? `run ${JSON.stringify(runId)} is already in this store: resume it, delete it, or use another runId`
        : `run ${JSON.stringify(runId)} was saved by another writer: this State builds on sequence ${expected}, the store is at ${actual}`,
    );
    this.runId = runId;
    this.expected = expected;
    this.actual = actual;
  }
}

/**
 * A value can't be saved exactly, or a saved one can't be read.
 *
 * @example
 * ```ts
 * import { SerializationError, State } from "waymark";
 *
 * try {
 *   State.create({ order: { total: () => 5 } }).toJSON();
 * } catch (error) {
 *   if (error instanceof SerializationError) console.log(error.path); // data.order.total
 * }
 * ```
 */
export class SerializationError extends WaymarkError {
  /** Where the value is, such as `data.order.amount`. */
  readonly path: string;

  /** @param path - where the value is; it starts the message. */
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    super("SERIALIZATION", `${path} ${problem}`, options);
    this.path = path;
  }
}

/**
 * A checkpoint's schema version can't be brought to the graph's.
 *
 * @example
 * ```ts
 * import { MemoryStore, MigrationError, State, StateGraph } from "waymark";
 *
 * const checkpoint = { store: new MemoryStore(), interval: 1, preserve: true };
 * const graph = (version: number) =>
 *   new StateGraph<{ n: number }>({ version, checkpoint })
 *     .addNode("one", () => ({ n: 1 }))
 *     .setEntryPoint("one")
 *     .setExitPoint("one");
 * const { runId } = await graph(2).execute(State.create({ n: 0 }));
 * await graph(1).resume(runId).catch((error: unknown) => {
 *   if (error instanceof MigrationError) console.log(error.from, error.to); // 2 1
 * });
 * ```
 */
export class MigrationError extends WaymarkError {
  /** The version the checkpoint, or the failed migration, starts from. */
  readonly from: number;
  /** The version the graph wants. */
  readonly to: number;

  /** @param from - the version found; `to` the version wanted. */
  constructor(from: number, to: number, problem: string, options?: { cause?: unknown }) {
    super("MIGRATION", `schema version ${from} of a graph at version ${to}: ${problem}`, options);
    this.from = from;
    this.to = to;
  }
}

/**
 * An option or argument is not what it must be. The message names it, what it got and what it wants.
 *
 * @example
 * ```ts
 * import { ConfigError, StateGraph } from "waymark";
 *
 * try {
 *   new StateGraph({ maxIterations: -1 });
 * } catch (error) {
 *   if (error instanceof ConfigError) console.log(error.message); // config.maxIterations wants a whole number from 1 up, or Infinity, got -1
 * }
 * ```
 */
export class ConfigError extends WaymarkError {
  /** The option or argument, such as `checkpoint.interval`. */
  readonly option: string;

  /** @param option - its name; `problem` goes on from there. */
  constructor(option: string, problem: string) {
    super("CONFIG", `${option} ${problem}`);
    this.option = option;
  }
}

/**
 * Thrown by a node, says that trying again is of no use.
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
 * Thrown by a node, says that trying again is worth it, and when.
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
  /** Milliseconds to wait, in place of what the retry policy says. */
  readonly retryAfter: number | undefined;

  /** @param options - `retryAfter` in milliseconds, and the `cause`. */
  constructor(message: string, options: { retryAfter?: number; cause?: unknown } = {}) {
    super(message, options);
    this.name = "RetryableError";
    this.retryAfter = options.retryAfter;
  }
}

/** The error class that carries the code `C`. */
export type ErrorWithCode<C extends ErrorCode> = C extends "CHECKPOINT_SAVE"
  ? CheckpointSaveError
  : C extends "CHECKPOINT_NOT_FOUND"
    ? CheckpointNotFoundError
    : C extends "CHECKPOINT_CORRUPT"
      ? CheckpointCorruptionError
      : C extends "CHECKPOINT_CONFLICT"
        ? CheckpointConflictError
        : C extends "SERIALIZATION"
          ? SerializationError
          : C extends "MIGRATION"
            ? MigrationError
            : C extends "CONFIG"
              ? ConfigError
              : C extends GraphErrorCode
                ? GraphError
                : C extends ExecutionErrorCode
                  ? ExecutionError
                  : WaymarkError;

/**
 * Whether a value is an error of waymark, of one code if given. It looks at the code, not the
 * class, so it also knows errors of a second copy of the package.
 *
 * @example
 * ```ts
 * import { isWaymarkError, MemoryStore } from "waymark";
 *
 * const run = await new MemoryStore().load("gone").catch((error: unknown) => {
 *   if (isWaymarkError(error, "CHECKPOINT_NOT_FOUND")) return error.runId;
 *   throw error;
 * });
 * console.log(run); // gone
 * ```
 */
export function isWaymarkError<C extends ErrorCode>(
  value: unknown,
  code?: C,
): value is ErrorWithCode<C> {
  if (!(value instanceof Error) || !(brand in value)) return false;
  return code === undefined || (value as WaymarkError).code === code;
}

/** A value as an error message shows it: short, and never a secret's whole text. */
export function show(value: unknown): string {
  if (typeof value === "string") {
    return value.length > 40
      ? `${JSON.stringify(value.slice(0, 40))}… (a string)`
      : JSON.stringify(value);
  }
  if (typeof value === "function") return `the function ${value.name || "(anonymous)"}`;
  if (typeof value === "object" && value !== null) {
    if (Array.isArray(value)) return "an array";
    const prototype: object | null = Object.getPrototypeOf(value);
    if (prototype === null) return "a null-prototype object";
    const name: unknown = prototype.constructor?.name;
    if (name === "Object") return "an object";
    return typeof name === "string" && name !== "" ? `a ${name}` : "an object of an unnamed class";
  }
  return typeof value === "bigint" ? `${value}n` : String(value);
}
