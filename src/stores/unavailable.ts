import { ConfigError } from "../errors.js";

/** Replaces `open.ts`, whose stores need Node, in bundles for the browser. */
async function unavailable(): Promise<never> {
  throw new ConfigError("store", "needs Node: use MemoryStore here, or a store of your own");
}

export { unavailable as mirror, unavailable as open };
