import { ConfigError, show } from "../errors.js";
import { callable } from "../options.js";
import type { State } from "./state.js";

/** Decides whether an edge is taken. It must be synchronous and return `true` or `false`. */
export type Predicate<D extends object> = (state: State<D>) => boolean;

/**
 * Always takes the edge; the same as an edge without a predicate.
 *
 * @example
 * ```ts
 * import { always } from "waymark";
 *
 * console.log(always()); // true
 * ```
 */
export function always(): boolean {
  return true;
}

/**
 * Takes the edge if the data has this key, even if its value is `undefined`.
 *
 * @example
 * ```ts
 * import { keyExists, State } from "waymark";
 *
 * const hasTitle = keyExists<{ title?: string }>("title");
 * console.log(hasTitle(State.create({})), hasTitle(State.create({ title: "" }))); // false true
 * ```
 */
export function keyExists<D extends object>(key: keyof D & string): Predicate<D> {
  return (state) => state.has(key);
}

/**
 * Takes the edge if the data has this key and its value is the same string, number or other primitive.
 *
 * @example
 * ```ts
 * import { keyEquals, State } from "waymark";
 *
 * const isDone = keyEquals<{ phase: string }, "phase">("phase", "done");
 * console.log(isDone(State.create({ phase: "done" })), isDone(State.create({ phase: "draft" }))); // true false
 * ```
 */
export function keyEquals<D extends object, K extends keyof D & string>(
  key: K,
  value: D[K],
): Predicate<D> {
  // A State holds copies, so objects are never the same; `includes` also finds NaN.
  return (state) => state.has(key) && [value as unknown].includes(state.get(key));
}

/**
 * Takes the edge if the predicate does not.
 *
 * @throws ConfigError if the predicate is not a function.
 *
 * @example
 * ```ts
 * import { keyExists, not, State } from "waymark";
 *
 * const lacksTitle = not(keyExists<{ title?: string }>("title"));
 * console.log(lacksTitle(State.create({}))); // true
 * ```
 */
export function not<D extends object>(predicate: Predicate<D>): Predicate<D> {
  callable("predicate", predicate);
  return (state) => !answer(predicate, state);
}

/**
 * Takes the edge if all predicates do, or if there are none.
 *
 * @throws ConfigError if a predicate is not a function.
 *
 * @example
 * ```ts
 * import { and, keyEquals, State } from "waymark";
 *
 * interface Text {
 *   length: number;
 *   checked: boolean;
 * }
 * const isReady = and<Text>(keyEquals("checked", true), (state) => state.data.length > 10);
 * console.log(isReady(State.create({ length: 12, checked: true }))); // true
 * ```
 */
export function and<D extends object>(...predicates: readonly Predicate<D>[]): Predicate<D> {
  checkAll(predicates);
  return (state) => predicates.every((predicate) => answer(predicate, state));
}

/**
 * Takes the edge if at least one of the predicates does.
 *
 * @throws ConfigError if a predicate is not a function.
 *
 * @example
 * ```ts
 * import { keyEquals, or, State } from "waymark";
 *
 * interface Review {
 *   score: number;
 *   forced: boolean;
 * }
 * const mayGo = or<Review>(keyEquals("forced", true), (state) => state.data.score >= 0.8);
 * console.log(mayGo(State.create({ score: 0.9, forced: false }))); // true
 * ```
 */
export function or<D extends object>(...predicates: readonly Predicate<D>[]): Predicate<D> {
  checkAll(predicates);
  return (state) => predicates.some((predicate) => answer(predicate, state));
}

function checkAll(predicates: readonly unknown[]): void {
  predicates.forEach((predicate, index) => {
    callable(`predicates[${index}]`, predicate);
  });
}

/** The result of a predicate, which must be a boolean: a promise, for example, would always count as true. */
function answer<D extends object>(predicate: Predicate<D>, state: State<D>): boolean {
  const result: unknown = predicate(state);
  if (typeof result === "boolean") return result;
  throw new ConfigError("predicate", `must return true or false; got ${show(result)}`);
}
