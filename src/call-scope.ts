/*
 * Detects whether code was called from inside an action, across awaits, to report calls that would wait for
 * themselves. It inspects the call stack only when asked, so an action costs nothing otherwise; an
 * AsyncLocalStorage would slow down every promise of the process. If the stack can't be read as data, or V8
 * does not track an await (a race, a callback), the answer is no.
 */

/** The stack frame of a call that nobody awaits, such as that of a listener. */
const ASIDE = "waymark:aside";

let count = 0;

/** Detects whether the caller is inside an action. */
export class CallScope {
  readonly name = `waymark:${++count}`;

  /** Calls the action. */
  run<T>(action: () => T | Promise<T>): Promise<T> {
    const { name } = this;
    // The method's stack frame has this name.
    const scope = { [name]: async (): Promise<T> => await action() };
    return (scope[name] as () => Promise<T>)();
  }

  /** Whether the caller is inside the action. */
  get isInside(): boolean {
    return callers().includes(this.name);
  }
}

/** Wraps a function so that what it calls counts as called from outside. */
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

/** The names of the functions that are running or awaited, innermost first, up to a call that nobody awaits. */
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
