import { enableMapSet, Immer } from "immer";
import { ConfigError, show } from "../errors.js";
import { callable } from "../options.js";

enableMapSet();

// `freezeCopy` freezes the result and skips what is frozen already; immer would walk all of it again.
const immer = new Immer({ autoFreeze: false });

/**
 * Applies a recipe to the data. What immer would reject is rejected with a ConfigError.
 *
 * @throws ConfigError if the recipe is not a function, is asynchronous, or returns something that is not
 *   data.
 */
export function produce(data: object, recipe: (draft: object) => unknown): unknown {
  callable("recipe", recipe);
  let done = false;
  try {
    return immer.produce(data, (draft) => {
      const result = recipe(draft);
      checkResult(result);
      done = true;
      return result;
    });
  } catch (error) {
    if (!done) throw error;
    throw new ConfigError(
      "recipe",
      "must change its draft or return new data, not both: write (draft) => { … }",
    );
  }
}

function checkResult(result: unknown): asserts result is object | undefined {
  if (result === undefined) return;
  if (result instanceof Promise) {
    // It rejects when it writes to its revoked draft; the error below already reports that.
    result.catch(() => {});
    throw new ConfigError("recipe", "must be synchronous; got a Promise: await before update");
  }
  if (typeof result === "object" && result !== null) return;
  throw new ConfigError(
    "recipe",
    `must change its draft or return new data; got ${show(result)}: write (draft) => { … }`,
  );
}
