import { after } from "../clock.js";

/** How long a server, or a run that was asked to stop, may take before it is abandoned, in milliseconds. */
export const GRACE = 5000;

/** Whether a promise resolves within this many milliseconds; rejects if it rejects within them. */
export async function inTime(promise: Promise<unknown>, ms: number): Promise<boolean> {
  let cancel = (): void => {};
  const late = new Promise<false>((resolve) => {
    cancel = after(ms, () => resolve(false));
  });
  try {
    return await Promise.race([promise.then(() => true as const), late]);
  } finally {
    cancel();
  }
}
