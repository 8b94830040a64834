import type { State } from "./state.js";

/** Decides whether an edge is taken. It must answer at once, with `true` or `false`. */
export type Predicate<D extends object> = (state: State<D>) => boolean;

/** Always takes the edge; the same as an edge without a predicate. */
export function always(): boolean {
  return true;
}

/** Takes the edge when the data has this key, also when its value is `undefined`. */
export function keyExists<D extends object>(key: keyof D & string): Predicate<D> {
  return (state) => state.has(key);
}

/** Takes the edge when the data has this key and its value is the same string, number or other primitive. */
export function keyEquals<D extends object, K extends keyof D & string>(
  key: K,
  value: D[K],
): Predicate<D> {
  // What a State holds is a copy, so objects are never the same; `includes` also knows NaN.
  return (state) => state.has(key) && [value as unknown].includes(state.get(key));
}

/** Takes the edge when the predicate does not. */
export function not<D extends object>(predicate: Predicate<D>): Predicate<D> {
  return (state) => !predicate(state);
}

/** Takes the edge when all predicates do; also when there are none. */
export function and<D extends object>(...predicates: readonly Predicate<D>[]): Predicate<D> {
  return (state) => predicates.every((predicate) => predicate(state));
}

/** Takes the edge when one of the predicates does; not when there are none. */
export function or<D extends object>(...predicates: readonly Predicate<D>[]): Predicate<D> {
  return (state) => predicates.some((predicate) => predicate(state));
}
