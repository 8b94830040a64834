/*
 * Whether code was called from inside an action, over every await: for errors about what would wait for itself. It
 * looks at the call stack when it is asked, so that an action which nobody asks about costs nothing; an
 * AsyncLocalStorage would cost every promise of the process. Where the stack can't be looked at as data, or an await
 * is of a kind that V8 does not follow (a race, a callback), nobody is inside anything.
 */

/** The frame of something that is called in passing, and that nobody waits for. */
const ASIDE = "waymark:aside";

let count = 0;

/** An action that can tell whether it is being called from inside itself. */
export class CallScope {
  readonly name = `waymark:${++count}`;

  /** Calls the action. */
  run<T>(action: () => T | Promise<T>): Promise<T> {
    const { name } = this;
    // The frame of a method has the name that it was given here.
    const scope = { [name]: async (): Promise<T> => await action() };
    return (scope[name] as () => Promise<T>)();
  }

  /** Whether the caller is inside the action. */
  get isInside(): boolean {
    return callers().includes(this.name);
  }
}

/** A function that counts as called from outside, wherever it is called from. */
export function aside<A extends readonly unknown[], T>(
  action: (...args: A) => T,
): (...args: A) => T {
  const scope = { [ASIDE]: (...args: A): T => action(...args) };
  return scope[ASIDE] as (...args: A) => T;
}

/** What V8 adds to `Error`. */
interface StackHost {
  stackTraceLimit: number;
  captureStackTrace?: (target: object, above: unknown) => void;
  prepareStackTrace?: ((error: unknown, frames: readonly Frame[]) => unknown) | undefined;
}

interface Frame {
  getFunctionName(): string | null;
}

/** The names of the functions that are running or awaited, up to what was called in passing, the innermost first. */
export function callers(): readonly (string | null)[] {
  const host = Error as unknown as StackHost;
  if (host.captureStackTrace === undefined) return [];
  const { stackTraceLimit, prepareStackTrace } = host;
  const target: { stack?: unknown } = {};
  try {
    host.stackTraceLimit = Number.POSITIVE_INFINITY;
    host.prepareStackTrace = (_error, frames) => frames.map((frame) => frame.getFunctionName());
    host.captureStackTrace(target, callers);
    const names = Array.isArray(target.stack) ? (target.stack as (string | null)[]) : [];
    const end = names.indexOf(ASIDE);
    return end === -1 ? names : names.slice(0, end);
  } finally {
    host.stackTraceLimit = stackTraceLimit;
    host.prepareStackTrace = prepareStackTrace;
  }
}
