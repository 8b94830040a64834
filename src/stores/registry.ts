import { DeferredStore } from "../checkpoint/deferred.js";
import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import { text } from "../options.js";
import { MemoryStore } from "./memory.js";

/** Makes a store when it is first needed; may load a module for it. */
export type CheckpointStoreFactory = () => CheckpointStore | Promise<CheckpointStore>;

const registered = new Map<string, CheckpointStore | CheckpointStoreFactory>([
  ["memory", () => new MemoryStore()],
  ["file", new DeferredStore("file", async () => new (await import("#stores/file")).FileStore())],
  [
    "journal",
    new DeferredStore("journal", async () => new (await import("#stores/journal")).JournalStore()),
  ],
  [
    "pglite",
    new DeferredStore(
      "pglite",
      async () =>
        new (await import("#stores/postgres")).PostgresStore({ client: "pglite:.waymark/pg" }),
    ),
  ],
]);

/**
 * Gives a store a name that graphs can use. A factory is called when the store is first used. The
 * registry is a convenience: wherever a name is taken, a store is too.
 *
 * @throws ConfigError when the name is empty, or there is neither a store nor a factory.
 *
 * @example
 * ```ts
 * import { getCheckpointStore, MemoryStore, registerCheckpointStore } from "waymark";
 *
 * registerCheckpointStore("audit", () => new MemoryStore({ keep: Infinity }));
 * console.log(getCheckpointStore("audit") === getCheckpointStore("audit")); // true
 * ```
 */
export function registerCheckpointStore(
  name: string,
  store: CheckpointStore | CheckpointStoreFactory,
): void {
  text("name", name);
  if (typeof store !== "function" && !isCheckpointStore(store)) {
    throw new ConfigError(
      "store",
      `wants a CheckpointStore or a function that makes one, got ${show(store)}`,
    );
  }
  if (typeof store === "function" && isCheckpointStore(store.prototype)) {
    throw new ConfigError(
      "store",
      `wants a CheckpointStore or a function that makes one, got the class ${store.name}: write () => new ${store.name}()`,
    );
  }
  registered.set(name, store);
}

/**
 * The store of this name, the same one each time.
 *
 * @throws ConfigError when no store has this name.
 *
 * @example
 * ```ts
 * import { getCheckpointStore, State } from "waymark";
 *
 * const { runId } = await State.create({ n: 1 }).checkpoint(getCheckpointStore("memory"));
 * console.log((await getCheckpointStore("memory").list()).includes(runId)); // true
 * ```
 */
export function getCheckpointStore(name: string): CheckpointStore {
  const found = registered.get(name);
  if (found === undefined) {
    const names = [...registered.keys()].join(", ");
    throw new ConfigError("store", `${show(name)} is not registered; there are ${names}`);
  }
  if (typeof found !== "function") return found;
  const made = found();
  const store = made instanceof Promise ? new DeferredStore(name, found, made) : made;
  if (!isCheckpointStore(store)) {
    throw new ConfigError(
      `store ${show(name)}`,
      `wants a factory that makes a CheckpointStore, got ${show(store)}`,
    );
  }
  registered.set(name, store);
  return store;
}
