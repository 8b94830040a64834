import { ConfigError, show } from "../errors.js";
import { newId } from "../random.js";

/** The longest run id there may be. */
const MAX_LENGTH = 200;

/** A new run id: a uuid v7, so ids sort by the time they were made. */
export function newRunId(): string {
  return newId();
}

/**
 * Checks a run id that a caller gave. Any text will do that a person can type and a store can
 * keep: a store turns it into a file name or a key, never into a path.
 */
export function checkRunId(runId: unknown): string {
  const problem =
    typeof runId !== "string"
      ? `got ${show(runId)}`
      : runId === ""
        ? "got an empty one"
        : runId.length > MAX_LENGTH
          ? `got ${runId.length} characters`
          : // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
            /[\u0000-\u001f\u007f]/.test(runId)
            ? `got a control character in ${show(runId)}`
            : /\p{Surrogate}/u.test(runId)
              ? `got half a surrogate pair in ${show(runId)}`
              : "";
  if (problem !== "" || typeof runId !== "string") {
    throw new ConfigError("runId", `must be a string of 1 to ${MAX_LENGTH} characters; ${problem}`);
  }
  return runId;
}
