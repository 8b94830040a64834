/** What is wrong with a graph or its use: the codes of a {@link GraphError}. */
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

/** Why a node made by `chain`, `parallel` or `route` failed. */
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
  | "SCHEMA"
  | "PAUSE_TIMEOUT"
  | "STORE"
  | "QUEUE"
  | "CONFIG";

/** Marks the errors of every copy of this package. */
export const brand = Symbol.for("waymark.error");

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
 *   if (error instanceof WaymarkError) console.log(error.code, error.help); // CONFIG waymark/guide/troubleshooting.md#config
 * }
 * ```
 */
export class WaymarkError extends Error {
  /** @internal */
  readonly [brand] = true;
  /** A stable string that identifies the kind of error. */
  readonly code: ErrorCode;
  /** The page of this package that explains the code: `waymark/guide/troubleshooting.md#config`. */
  readonly help: string;

  /** @param code - what went wrong; `options.cause` is the error behind this one. */
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    // A field, not a getter: whatever prints an error prints its fields.
    this.help = `waymark/guide/troubleshooting.md#${code.toLowerCase()}`;
  }
}
