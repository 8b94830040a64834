import { join } from "node:path";
import Database from "libsql";
import { cycleInStore } from "../workloads/cycle-in-store.mjs";
import { SqliteStore } from "../workloads/sqlite-store.mjs";

/** A store on a client of its own, so that it and the floor use the same driver. */
class ClosingStore extends SqliteStore {
  #client;

  constructor({ root, ...options }) {
    const client = new Database(join(root, "waymark.db"));
    super({ client, ...options });
    this.#client = client;
  }

  async close() {
    await super.close();
    this.#client.close();
  }
}

export const { prepare, run } = cycleInStore((options) => new ClosingStore(options));
