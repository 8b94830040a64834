import { ConfigError, isWaymarkError } from "../errors.js";
import { callable, check, checkOptions } from "../options.js";
import type { Immutable } from "./immutable.js";
import { ownOf, setKey } from "./shape.js";

/**
 * Combines a key's value in the State with the one that a node returned. The first is `undefined` if the State
 * has none.
 *
 * @example
 * ```ts
 * import { type Reducer, State, StateGraph } from "waymark";
 *
 * const longest: Reducer<string> = (current, update) =>
 *   update.length > current.length ? update : current;
 * const graph = new StateGraph<{ title: string }>({ reducers: { title: longest } })
 *   .addNode("name", () => ({ title: "Tides" }))
 *   .setEntryPoint("name")
 *   .setExitPoint("name");
 * console.log((await graph.execute(State.create({ title: "The sea" }))).data.title); // The sea
 * ```
 */
export type Reducer<T> = (current: T, update: T) => T;

/** How a graph combines some keys of a returned object with the State instead of replacing them. */
export type Reducers<D extends object> = {
  readonly [K in keyof D]?: {
    /** A {@link Reducer}. Declared as a method, because only a method's parameter may be narrower than what is passed. */
    reduce(current: D[K], update: Required<D>[K]): D[K] | Immutable<D[K]>;
  }["reduce"];
};

const isList = check("given arrays", Array.isArray);
const isNumber = check("given numbers", (value) => typeof value === "number");

/**
 * A reducer that appends the items of a list.
 *
 * @throws ConfigError if it is not given arrays.
 *
 * @example
 * ```ts
 * import { append, END, State, StateGraph } from "waymark";
 *
 * const graph = new StateGraph<{ messages: string[] }>({ reducers: { messages: append } })
 *   .addNode("greet", () => ({ messages: ["hello"] }))
 *   .addEdge("greet", END)
 *   .setEntryPoint("greet");
 * const final = await graph.execute(State.create({ messages: ["first"] }));
 * console.log(final.data.messages.join()); // first,hello
 * ```
 */
export function append<T>(current: readonly T[] | undefined, update: readonly T[]): T[] {
  isList("append", current ?? []);
  isList("append", update);
  return [...(current ?? []), ...update];
}

/**
 * A reducer that appends the items of a list that are not in it yet.
 *
 * @throws ConfigError if it is not given arrays.
 *
 * @example
 * ```ts
 * import { union } from "waymark";
 *
 * console.log(union(["a", "b"], ["b", "c"]).join()); // a,b,c
 * ```
 */
export function union<T>(current: readonly T[] | undefined, update: readonly T[]): T[] {
  isList("union", current ?? []);
  isList("union", update);
  return [...new Set([...(current ?? []), ...update])];
}

/**
 * A reducer that keeps the larger of two numbers.
 *
 * @throws ConfigError if it is not given numbers.
 *
 * @example
 * ```ts
 * import { max } from "waymark";
 *
 * console.log(max(2, 3)); // 3
 * ```
 */
export function max(current: number | undefined, update: number): number {
  isNumber("max", current ?? 0);
  isNumber("max", update);
  return Math.max(current ?? update, update);
}

/**
 * A reducer that adds two numbers.
 *
 * @throws ConfigError if it is not given numbers.
 *
 * @example
 * ```ts
 * import { sum } from "waymark";
 *
 * console.log(sum(2, 3)); // 5
 * ```
 */
export function sum(current: number | undefined, update: number): number {
  isNumber("sum", current ?? 0);
  isNumber("sum", update);
  return (current ?? 0) + update;
}

/** Throws if the value is not a table of reducers. */
export function checkReducers(name: string, value: unknown): void {
  const keys = Object.keys(Object(value));
  checkOptions(name, value, Object.fromEntries(keys.map((key) => [key, callable])));
}

/**
 * Applies the reducers to an object that a node returned.
 *
 * @throws ConfigError, naming the key, if its reducer rejects the returned value or is asynchronous.
 */
export function reduced(
  data: object,
  returned: object,
  reducers: Readonly<Record<string, Reducer<unknown>>>,
): object {
  const result = { ...returned };
  for (const key of Object.keys(returned)) {
    const reduce = ownOf(reducers, key);
    if (reduce === undefined) continue;
    const current: unknown = Object.hasOwn(data, key) ? Reflect.get(data, key) : undefined;
    setKey(result, key, applied(key, reduce, current, Reflect.get(returned, key)));
  }
  return result;
}

function applied(
  key: string,
  reduce: Reducer<unknown>,
  current: unknown,
  update: unknown,
): unknown {
  let value: unknown;
  try {
    value = reduce(current, update);
  } catch (error) {
    if (!isWaymarkError(error, "CONFIG")) throw error;
    throw new ConfigError(`config.reducers.${key}`, `can't take it: ${error.message}`);
  }
  if (!(value instanceof Promise)) return value;
  // Nobody awaits it.
  value.catch(() => {});
  throw new ConfigError(`config.reducers.${key}`, "must return a value; got a promise");
}
