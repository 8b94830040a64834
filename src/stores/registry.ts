import {
  type CheckpointStore,
  isCheckpointStore,
  methodNames,
  opened,
  storeMethods,
  unclaimed,
} from "../checkpoint/store.js";
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
  const isClass = typeof store === "function" && isCheckpointStore(store.prototype);
  if (isClass || (typeof store !== "function" && !isCheckpointStore(store))) {
    const got = isClass ? `the class ${store.name}: write () => new ${store.name}()` : show(store);
    const problem = `must be a CheckpointStore or a function that makes one; got ${got}`;
    throw new ConfigError("store", problem);
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

/** Throws if a factory made no store. */
function checkMade(name: string, store: unknown): CheckpointStore {
  if (isCheckpointStore(store)) return store;
  const problem = `must come from a factory that makes a CheckpointStore; got ${show(store)}`;
  throw new ConfigError(`store ${show(name)}`, problem);
}

const nothing = async (): Promise<undefined> => undefined;

/** What is true of a store that lacks a method. Without an entry here, a call of the method is an error. */
const withoutMethod: Partial<CheckpointStore> = {
  claim: async () => unclaimed,
  holder: nothing,
  unreadable: async () => [],
  saveTopology: nothing,
  topology: nothing,
};

/**
 * A store that is opened on first use. What it can do is known only then: it has every method, and calling one that the
 * store behind it lacks is an error, except where the answer is the same for every such store. {@link opened} gives the
 * store behind it.
 *
 * @param name - names the store in errors.
 * @param create - opens the store; called again after it failed.
 * @param first - the result of `create`, if it has been called already.
 */
export function deferredStore(
  name: string,
  create: () => CheckpointStore | Promise<CheckpointStore>,
  first?: Promise<CheckpointStore>,
): Required<CheckpointStore> {
  let opening: Promise<CheckpointStore> | undefined;
  const begin = (make: typeof create): Promise<CheckpointStore> => {
    const made = (async () => opened(checkMade(name, await make())))();
    opening = made.catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };
  const open = (): Promise<CheckpointStore> => opening ?? begin(create);
  // A failure surfaces only when the store is used, which tries again.
  if (first !== undefined) begin(() => first).catch(() => {});
  const call = async (method: (typeof methodNames)[number], args: unknown[]): Promise<unknown> => {
    const store = await open();
    const owner = store[method] === undefined ? withoutMethod : store;
    const found: unknown = owner[method];
    if (typeof found === "function") return found.apply(owner, args);
    throw new ConfigError(`store ${show(name)}`, `has no ${method}`);
  };
  const close = async (): Promise<void> => (await opening)?.close?.();
  const store: Record<string, unknown> = {};
  for (const method of methodNames) {
    async function* stream(...args: unknown[]): AsyncGenerator {
      yield* (await call(method, args)) as AsyncIterable<unknown>;
    }
    const answer = (...args: unknown[]): Promise<unknown> => call(method, args);
    store[method] = storeMethods[method] === "optional stream" ? stream : answer;
  }
  return { ...(store as unknown as Required<CheckpointStore>), open, close };
}
