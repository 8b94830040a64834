/** A longer timer would fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1;

/** Keeps the process alive until the response, which a store's connection does not. */
const timer = (ms: number, callback: () => void): (() => void) => {
  const started = setTimeout(callback, Math.min(ms, LONGEST_TIMER));
  return () => clearTimeout(started);
};

/**
 * Waits for a promise; throws an error if that takes longer than this many milliseconds.
 *
 * @param late - the error, and what to do then, such as dropping the connection.
 */
export async function answeredWithin<T>(
  ms: number,
  promise: Promise<T>,
  late: { error(): Error; drop?(): void },
  after = timer,
): Promise<T> {
  let cancel = (): void => {};
  const tooLate = new Promise<never>((_, reject) => {
    cancel = after(ms, () => {
      reject(late.error());
      late.drop?.();
    });
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    cancel();
  }
}
