import { after } from "../clock.js";
import { abortWith } from "../concurrency.js";

/**
 * Limits an action to this many milliseconds; then its signal aborts and it fails. An action that ignores its signal is
 * abandoned: its result, if there ever is one, is ignored.
 */
export async function within<T>(
  ms: number,
  what: string,
  outer: AbortSignal,
  action: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const ignore = abortWith(controller, outer);
  let cancel = (): void => {};
  const late = new Promise<never>((_resolve, reject) => {
    cancel = after(ms, () => {
      const error = new Error(`${what} took longer than its timeout of ${ms} ms`);
      error.name = "TimeoutError";
      controller.abort(error);
      reject(error);
    });
  });
  try {
    return await Promise.race([action(controller.signal), late]);
  } finally {
    cancel();
    ignore();
  }
}
