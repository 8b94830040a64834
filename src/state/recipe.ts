import { enableMapSet, Immer } from "immer";
import { ConfigError, show } from "../errors.js";

enableMapSet();

// `freezeCopy` freezes what comes out, and knows what is frozen already; immer would walk it all again.
const immer = new Immer({ autoFreeze: false });

/**
 * What a recipe makes of the data; what immer would refuse with an error of its own, is refused with ours.
 *
 * @throws ConfigError if the recipe is not a function, is asynchronous, or does not give data.
 */
export function produce(data: object, recipe: (draft: object) => unknown): unknown {
  if (typeof recipe !== "function")
    throw new ConfigError("recipe", `must be a function; got ${show(recipe)}`);
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
    // It fails once it writes to a draft that is gone; this error says so already.
    result.catch(() => {});
    throw new ConfigError("recipe", "must be synchronous; got a Promise: await before update");
  }
  if (typeof result === "object" && result !== null) return;
  throw new ConfigError(
    "recipe",
    `must change its draft or return new data; got ${show(result)}: write (draft) => { … }`,
  );
}
