import { checkMade, deferredStore } from "../checkpoint/deferred.js";
import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { ConfigError, show } from "../errors.js";
import { text } from "../options.js";
import { openStore, parseAddress, unknownStore } from "./address.js";
import { MemoryStore } from "./memory.js";

/** Makes a store when it is first needed; may load a module for it. */
export type CheckpointStoreFactory = () => CheckpointStore | Promise<CheckpointStore>;

/** The stores that users registered or opened by address. */
const registered = new Map<string, CheckpointStore | CheckpointStoreFactory>();

/**
 * Gives a store a name that graphs can use. A factory is called when the store is first used. The registry is a
 * convenience: wherever a name is accepted, so is a store.
 *
 * @throws ConfigError if the name is empty, or `store` is neither a store nor a factory.
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
      `must be a CheckpointStore or a function that makes one; got ${show(store)}`,
    );
  }
  if (typeof store === "function" && isCheckpointStore(store.prototype)) {
    throw new ConfigError(
      "store",
      `must be a CheckpointStore or a function that makes one; got the class ${store.name}: write () => new ${store.name}()`,
    );
  }
  registered.set(name, store);
}

/**
 * The store of this name or address, the same one each time. Addresses are `memory`, `file:DIR`,
 * `sqlite:FILE`, `pglite:DIR`, `postgres://…` and `redis://…`; `file`, `sqlite` and `pglite` alone mean their
 * default place under `.waymark`. `mirror:STORE,COPY` copies what is saved in the first to the others.
 * Registered names take precedence.
 *
 * A store that is opened on first use has every method; one that the store behind it lacks fails when it is called.
 * What it can do is known from {@link CheckpointStore.open}.
 *
 * @throws ConfigError if it is neither an address nor registered.
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
  if (found !== undefined && typeof found !== "function") return found;
  const store = found === undefined ? atAddress(name) : fromFactory(name, found);
  registered.set(name, store);
  return store;
}

function atAddress(name: string): CheckpointStore {
  const address = typeof name === "string" ? parseAddress(name) : undefined;
  if (address === undefined) throw unknownStore(String(name), [...registered.keys()]);
  if (address.scheme === "memory") return new MemoryStore();
  return deferredStore(name, () => openStore(address));
}

function fromFactory(name: string, make: CheckpointStoreFactory): CheckpointStore {
  const made = make();
  return made instanceof Promise ? deferredStore(name, make, made) : checkMade(name, made);
}
