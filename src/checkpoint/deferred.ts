import { ConfigError, show } from "../errors.js";
import { type CheckpointStore, isCheckpointStore, storeMethods } from "./store.js";
import { methodNames, opened } from "./wrap.js";

/** Throws if a factory made no store. */
export function checkMade(name: string, store: unknown): CheckpointStore {
  if (isCheckpointStore(store)) return store;
  throw new ConfigError(
    `store ${show(name)}`,
    `must come from a factory that makes a CheckpointStore; got ${show(store)}`,
  );
}

const nothing = async (): Promise<undefined> => undefined;

/** What is true of a store that lacks a method. Without an entry here, a call of the method is an error. */
const withoutMethod: Partial<CheckpointStore> = {
  claim: async () => ({ release: async () => {} }),
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
