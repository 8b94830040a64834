import { BackendError } from "../checkpoint/records/backend.js";
import { now, sleep } from "../clock.js";
import { isWaymarkError } from "../errors.js";

const FIRST_WAIT = 20;
const LONGEST_WAIT = 500;

/**
 * What an error of a server means for what was asked of it:
 *
 * - `unreached`: it never saw it, or is not ready to do it;
 * - `undone`: it undid it;
 * - `broken`: the connection broke, perhaps after it was done;
 * - `refused`: it looked at it and refused it;
 * - `unknown`: nobody can say.
 */
export type FailureKind = "unreached" | "undone" | "broken" | "refused" | "unknown";

/** How to read the errors of a server. */
export interface Failures {
  kindOf(error: unknown): FailureKind;
  /** An error in words, with what to do about it. */
  explain(error: unknown): string;
}

/**
 * Tries again for so many milliseconds what the connection, not the statement, is to blame for.
 *
 * @param attempt - calls `begin` once it sends something that may take effect.
 * @throws BackendError that is unsure if something may have taken effect.
 */
export async function retrying<T>(
  retryFor: number,
  failures: Failures,
  attempt: (begin: () => void) => Promise<T>,
): Promise<T> {
  const end = now() + retryFor;
  let unsure = false;
  for (let tries = 0; ; tries++) {
    let begun = false;
    try {
      return await attempt(() => {
        begun = true;
      });
    } catch (error) {
      if (isWaymarkError(error)) throw error;
      const kind = failures.kindOf(error);
      unsure ||= begun && (kind === "broken" || kind === "unknown");
      const wait = Math.min(FIRST_WAIT * 2 ** tries, LONGEST_WAIT) * (0.5 + Math.random() / 2);
      if (kind === "refused" || kind === "unknown" || now() + wait > end) {
        throw new BackendError(failures.explain(error), { unsure, cause: error });
      }
      await sleep(wait);
    }
  }
}
