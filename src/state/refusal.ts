import { SerializationError } from "../errors.js";

/** Thrown inside; the keys are gathered on its way up, so that a path costs nothing until it is needed. */
export class Refusal {
  readonly problem: string;
  readonly keys: string[] = [];

  constructor(problem: string) {
    this.problem = problem;
  }
}

/** Adds a key to a refusal that passes by. */
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

/** Whether the stack was full. How much it holds depends on the engine, and on who calls. */
export function isOverflow(error: unknown): boolean {
  return error instanceof RangeError && error.message.includes("call stack");
}

function refusalOf(error: unknown): unknown {
  return isOverflow(error) ? new Refusal("is nested more levels deep than the stack holds") : error;
}

/** Does something, and turns a refusal out of it into an error that names its path. */
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
