import type { Immutable } from "../state/immutable.js";
import type { ValuesListener } from "./run.js";

/** What a node has changed; see {@link StateGraph.stream}. */
export interface ValuesEvent<D extends object> {
  /** Distinguishes it from the events of the run. */
  readonly type: "values";
  /** The node that completed. */
  readonly node: string;
  /** How many nodes have completed. */
  readonly step: number;
  /** The keys whose values are new, with these values; `undefined` for a key that is gone. */
  readonly changed: { readonly [K in keyof D]?: Immutable<D[K]> | undefined };
}

/** Makes an event of what each node has changed. */
export function valuesListener<D extends object>(
  add: (event: ValuesEvent<D>) => void,
): ValuesListener<D> {
  return (node, before, after) => {
    const changed = changesOf(before.data, after.data) as ValuesEvent<D>["changed"];
    add({ type: "values", node, step: after.step, changed });
  };
}

/** The top-level keys that differ. Data is structurally shared, so what is the same is the same object. */
function changesOf(before: object, after: object): object {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  const isNew = (key: string): boolean =>
    !Object.is(Reflect.get(before, key), Reflect.get(after, key)) ||
    Object.hasOwn(before, key) !== Object.hasOwn(after, key);
  return Object.fromEntries(
    [...keys].filter(isNew).map((key): [string, unknown] => [key, Reflect.get(after, key)]),
  );
}
