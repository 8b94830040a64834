import { ConfigError } from "../errors.js";

/** Stands for the stores that need Node, where there is none: bundlers for the browser take it in their place. */
class UnavailableStore {
  constructor() {
    throw new ConfigError("store", "needs Node: use MemoryStore here, or a store of your own");
  }
}

export {
  UnavailableStore as FileStore,
  UnavailableStore as SqliteStore,
  UnavailableStore as PostgresStore,
  UnavailableStore as RedisStore,
};
