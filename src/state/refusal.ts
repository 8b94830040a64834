import { SerializationError } from "../errors.js";

/** Thrown internally. The keys are collected on the way up, so that a path costs nothing until it is needed. */
export class Refusal {
  readonly problem: string;
  readonly keys: string[] = [];

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Adds a key to the path of a refusal; returns any other error unchanged. */
export function below(thrown: unknown, key: string | number): unknown {
  const error = refusalOf(thrown);
  if (error instanceof Refusal) {
    error.keys.unshift(
      typeof key === "number"
        ? `[${key}]`
        : /^[\w$]+$/.test(key)
          ? `.${key}`
          : `[${JSON.stringify(key)}]`,
    );
  }
  return error;
}

/** Whether the stack overflowed. Its capacity depends on the engine and the caller. */
export function isOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes("call stack");
}

function refusalOf(error: unknown): unknown {
  return isOverflow(error) ? new Refusal("is nested more levels deep than the stack holds") : error;
}

/** Runs an action and turns a refusal into an error that names its path. */
export function named<T>(root: string, action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    const error = refusalOf(thrown);
    if (error instanceof Refusal)
      throw new SerializationError(root + error.keys.join(""), error.problem);
    throw error;
  }
}
