import { ConfigError } from "../errors.js";

/** Stands for what opens the stores that need Node, where there is none: bundlers for the browser take it in its place. */
async function unavailable(): Promise<never> {
  throw new ConfigError("store", "needs Node: use MemoryStore here, or a store of your own");
}

export {
  unavailable as file,
  unavailable as memory,
  unavailable as mirror,
  unavailable as pglite,
  unavailable as postgres,
  unavailable as redis,
  unavailable as sqlite,
};
