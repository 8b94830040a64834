import { BackendError } from "../checkpoint/records/backend.js";
import { now, sleep } from "../clock.js";
import { isWaymarkError } from "../errors.js";

const FIRST_WAIT = 20;
const LONGEST_WAIT = 500;

/**
 * What a server's error means for the request:
 *
 * - `unreached`: the server did not receive it, or is not ready to execute it;
 * - `undone`: the server rolled it back;
 * - `broken`: the connection broke, perhaps after it was executed;
 * - `refused`: the server rejected it;
 * - `unknown`: it may or may not have been executed.
 */
export type FailureKind = "unreached" | "undone" | "broken" | "refused" | "unknown";

/** Interprets the errors of a server. */
export interface Failures {
  kindOf(error: unknown): FailureKind;
  /** The error's message, with advice where there is any. */
  explain(error: unknown): string;
}

/**
 * Retries for up to `retryFor` milliseconds what failed because of the connection rather than the request.
 *
 * @param attempt - calls `begin` before it sends something that may take effect.
 * @throws BackendError if the retries failed too; it is `unsure` if something may have taken effect.
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
