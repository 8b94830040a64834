/*
 * Detects whether code was called from inside an action, across awaits, to report calls that would wait for
 * themselves. It reads the call stack only when asked, so an action costs nothing otherwise; before Node 24 an
 * AsyncLocalStorage slows down every promise of the process. How a stack is read is a setting of `Error`: it is made
 * in a realm of our own, and the process's `Error` stays as it is. Where no realm can be made, as in a browser, and
 * where V8 does not track an await (a race, a callback), the answer is no.
 */

/** The stack frame of a call that nobody awaits, such as that of a listener. */
const ASIDE = "waymark:aside";

let count = 0;

/** An action that {@link callers} names while it is under way. */
export class CallScope {
  readonly name = `waymark:${++count}`;

  /** Calls the action. */
  run<T>(action: () => T | Promise<T>): Promise<T> {
    const { name } = this;
    // The method's stack frame has this name.
    const scope = { [name]: async (): Promise<T> => await action() };
    return (scope[name] as () => Promise<T>)();
  }
}

/** Wraps a function so that what it calls counts as called from outside. */
export function aside<A extends readonly unknown[], T>(
  action: (...args: A) => T,
): (...args: A) => T {
  const scope = { [ASIDE]: (...args: A): T => action(...args) };
  return scope[ASIDE] as (...args: A) => T;
}

/** What a host that can make realms offers. */
interface Host {
  readonly process?: {
    getBuiltinModule?(id: "node:vm"): { runInNewContext(code: string): unknown };
  };
}

/** Runs in a realm of its own: its value reads the functions of a stack by name. */
const READER = `
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = (_error, frames) => frames.map((frame) => frame.getFunctionName());
  () => new Error().stack;
`;

let reader: (() => unknown) | undefined;

function newReader(): () => unknown {
  try {
    const { process } = globalThis as Host;
    const made = process?.getBuiltinModule?.("node:vm").runInNewContext(READER);
    return typeof made === "function" ? (made as () => unknown) : () => [];
  } catch {
    // A host may have the module and not allow it.
    return () => [];
  }
}

/** The names of the functions that are running or awaited, innermost first, up to a call that nobody awaits. */
export function callers(): readonly (string | null)[] {
  reader ??= newReader();
  const read = reader();
  // Other engines than V8 give the stack as text.
  const names: readonly (string | null)[] = Array.isArray(read) ? read : [];
  const end = names.indexOf(ASIDE);
  return end === -1 ? names : names.slice(0, end);
}
