type Primitive = string | number | boolean | bigint | symbol | null | undefined;

// biome-ignore format: one line for each kind
/** Types that can't be drafted or made readonly field by field. */
type Atomic =
  | Date | RegExp | URL | ArrayBufferLike | ArrayBufferView
  | ((...args: never[]) => unknown)
  | (abstract new (...args: never[]) => unknown);

/**
 * A type as a State holds it: deeply readonly. Dates, RegExps, URLs, Errors, buffers and typed arrays are
 * unchanged; Map and Set become ReadonlyMap and ReadonlySet.
 *
 * @example
 * ```ts
 * import type { Immutable } from "waymark";
 *
 * type Data = Immutable<{ tags: string[]; seen: Map<string, Date> }>;
 * const data: Data = { tags: ["a"], seen: new Map() };
 * console.log(data.tags.length); // 1
 * ```
 */
export type Immutable<T> = T extends Primitive | Atomic
  ? T
  : T extends Tuple
    ? { readonly [K in keyof T]: Immutable<T[K]> }
    : T extends readonly (infer E)[]
      ? readonly Immutable<E>[]
      : T extends ReadonlyMap<infer K, infer V>
        ? ReadonlyMap<Immutable<K>, Immutable<V>>
        : T extends ReadonlySet<infer V>
          ? ReadonlySet<Immutable<V>>
          : T extends object
            ? IsError<T> extends true
              ? T
              : { readonly [K in keyof T]: Immutable<T[K]> }
            : T;

/**
 * A type as a recipe of `update` may modify it: the opposite of {@link Immutable}.
 *
 * @example
 * ```ts
 * import { type Draft, State } from "waymark";
 *
 * interface Data {
 *   readonly tags: readonly string[];
 * }
 * const addTag = (draft: Draft<Data>): void => {
 *   draft.tags.push("b");
 * };
 * console.log(State.create<Data>({ tags: ["a"] }).update(addTag).data.tags.length); // 2
 * ```
 */
export type Draft<T> = T extends Primitive | Atomic
  ? T
  : T extends Tuple
    ? { -readonly [K in keyof T]: Draft<T[K]> }
    : T extends readonly (infer E)[]
      ? Draft<E>[]
      : T extends ReadonlyMap<infer K, infer V>
        ? Map<Draft<K>, Draft<V>>
        : T extends ReadonlySet<infer V>
          ? Set<Draft<V>>
          : T extends object
            ? IsError<T> extends true
              ? T
              : { -readonly [K in keyof T]: Draft<T[K]> }
            : T;

/**
 * Mapping an array would make a recursive type infinite, so only tuples are mapped. A tuple of optional items
 * is recognized by its length.
 */
type Tuple =
  | readonly [unknown, ...unknown[]]
  | readonly [...unknown[], unknown]
  | { readonly length: 0 | 1 | 2 | 3 | 4 };

/** An object that merely has a name and a message is not an Error. */
type IsError<T> = Required<T> extends Required<Error> ? true : false;
