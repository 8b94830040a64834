import type { Immutable } from "../../state/immutable.js";
import type { State } from "../../state/state.js";

/** Called after each completed node with the States before and after it. */
export type ValuesListener<D extends object> = (
  node: string,
  before: State<D>,
  after: State<D>,
) => void;

/** The changes of a node; see {@link StateGraph.stream}. */
export interface ValuesEvent<D extends object> {
  /** Distinguishes it from the events of the run. */
  readonly type: "values";
  /** The node that completed. */
  readonly node: string;
  /** The number of nodes that have completed. */
  readonly step: number;
  /** The keys whose values changed, with the new values; `undefined` for a removed key. */
  readonly changed: { readonly [K in keyof D]?: Immutable<D[K]> | undefined };
}

/** Emits an event with the changes of each node. */
export function valuesListener<D extends object>(
  add: (event: ValuesEvent<D>) => void,
): ValuesListener<D> {
  return (node, before, after) => {
    const changed = changesOf(before.data, after.data) as ValuesEvent<D>["changed"];
    add({ type: "values", node, step: after.step, changed });
  };
}

/** The top-level keys that differ. Data is structurally shared, so what did not change is the same object. */
function changesOf(before: object, after: object): object {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const isNew = (key: string): boolean =>
    !Object.is(Reflect.get(before, key), Reflect.get(after, key)) ||
    Object.hasOwn(before, key) !== Object.hasOwn(after, key);
  return Object.fromEntries(
    [...keys].filter(isNew).map((key): [string, unknown] => [key, Reflect.get(after, key)]),
  );
}
