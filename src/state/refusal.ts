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
export function below(error: unknown, key: string | number): unknown {
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

/** Does something, and turns a refusal out of it into an error that names its path. */
export function named<T>(root: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof Refusal)
      throw new SerializationError(root + error.keys.join(""), error.problem);
    throw error;
  }
}
