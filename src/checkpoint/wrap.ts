import { type CheckpointStore, storeMethods } from "./store.js";

/** A method of a store, whichever it is. */
type Method = (...args: readonly unknown[]) => unknown;

/** The names of all methods but `open`, which a wrapper of a store that opens on first use has to answer itself. */
export const methodNames = Object.keys(storeMethods).filter(
  (name): name is keyof Overrides => name !== "open",
);

/** Those methods of a type of store that the contract has. */
export type Wrapped<S extends CheckpointStore> = Pick<S, Extract<keyof S, keyof CheckpointStore>>;

/** For methods that a wrapper changes: given the method of the store behind it, returns its own. */
export type Overrides = {
  readonly [K in Exclude<keyof CheckpointStore, "open">]?: (
    next: Required<CheckpointStore>[K],
  ) => Required<CheckpointStore>[K];
};

/**
 * Wraps a store: the wrapper has the same methods of the contract, no more and no fewer, and forwards all but a few.
 *
 * @param own - methods of the wrapper itself.
 */
export function wrap<S extends CheckpointStore, O extends object = object>(
  store: S,
  overrides: Overrides,
  own?: O,
): Wrapped<S> & O {
  const wrapped: Record<string, unknown> = {};
  for (const name of methodNames) {
    if (!(name in store) || store[name] === undefined) continue;
    const next: Method = (...args) => (store[name] as Method)(...args);
    const override = overrides[name] as ((next: Method) => Method) | undefined;
    wrapped[name] = override?.(next) ?? next;
  }
  if ("open" in store && store.open !== undefined) {
    wrapped.open = async () => wrap(await opened(store), overrides, own);
  }
  return Object.assign(wrapped, own) as Wrapped<S> & O;
}

/** The store itself, whose methods tell what it can do: to be used before a store is asked for an optional method. */
export function opened<S extends CheckpointStore | undefined>(
  store: S,
): S | Promise<CheckpointStore> {
  return store === undefined || !("open" in store) || store.open === undefined
    ? store
    : store.open();
}
