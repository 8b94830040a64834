import type { ErrorCode } from "./table.js";

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

/** Marks the errors of every copy of this package. */
export const brand = Symbol.for("waymark.error");

/** The section of the guide, which ships with the package, about a code. */
export function helpOf(code: string): string {
  return `waymark/guide/troubleshooting.md#${code.toLowerCase()}`;
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
    // Which takes the cause, if there is one, from whatever options there are.
    super(message, options);
    this.name = new.target.name;
    this.code = code;
    // A field, not a getter: whatever prints an error prints its fields.
    this.help = helpOf(code);
  }
}
