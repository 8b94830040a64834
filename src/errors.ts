import { brand, type WaymarkError } from "./errors/base.js";
import type * as classes from "./errors/classes.js";
import type { ClassName, ErrorCode } from "./errors/table.js";

export { helpOf } from "./errors/base.js";
export { wordsOf } from "./errors/checkpoint.js";
export * from "./errors/classes.js";
export { errorTable } from "./errors/table.js";
export { asText, isMissingPackage, messageOf, show, systemCode, withHint } from "./errors/text.js";
export type { ClassName, ErrorCode };

/** The class that the table names for the code `C`. */
export type ErrorWithCode<C extends ErrorCode> = C extends ErrorCode
  ? InstanceType<(typeof classes)[ClassName<C>]>
  : never;

/**
 * Whether a value is a waymark error, with the given code if any. It checks the code, not the class, so it also
 * recognizes errors from a second copy of the package.
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
