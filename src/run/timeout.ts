import { after } from "../clock.js";

/**
 * Gives an action so many milliseconds; then its signal aborts and it has failed. One that ignores its
 * signal is left alone: its result, if it ever comes, is not looked at.
 */
export async function within<T>(
  ms: number,
  what: string,
  outer: AbortSignal,
  action: (signal: AbortSignal) => T | Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const abort = (): void => controller.abort(outer.reason);
  if (outer.aborted) abort();
  outer.addEventListener("abort", abort);
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
    outer.removeEventListener("abort", abort);
  }
}
