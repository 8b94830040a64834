import { ConfigError, show } from "../errors.js";
import { newId } from "../random.js";

/** The maximum length of a run id. */
const MAX_LENGTH = 200;

/** A new run id: a uuid v7, so ids sort by creation time. */
export function newRunId(): string {
  return newId();
}

/**
 * Checks a caller's run id. Any text that can be typed and stored will do: a store turns it into a file name
 * or a key, never into a path.
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
