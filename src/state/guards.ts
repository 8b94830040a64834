/*
 * A frozen Date, Map or Set can still be set, since what it holds is no field of it. Here those that
 * belong to a State lose the methods that would.
 */

function refuse(): never {
  throw new TypeError(
    "this value belongs to a State, which never changes: put a new value into a new State",
  );
}

const mapGuard = guardOf("set", "delete", "clear");
const setGuard = guardOf("add", "delete", "clear");
const dateGuard = guardOf(
  ...Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set")),
);

function guardOf(...methods: readonly string[]): PropertyDescriptorMap {
  return Object.fromEntries(methods.map((method) => [method, { value: refuse }]));
}

/** Whether a value is one that was frozen here. */
export function isGuarded(value: object, method: string): boolean {
  return Object.isFrozen(value) && Reflect.get(value, method) === refuse;
}

/** Freezes a Date and takes its setters away. */
export function freezeDate(date: Date): Date {
  return Object.freeze(Object.defineProperties(date, dateGuard));
}

/** Freezes a Map and takes its setters away. */
export function freezeMap<K, V>(map: Map<K, V>): Map<K, V> {
  return Object.freeze(Object.defineProperties(map, mapGuard));
}

/** Freezes a Set and takes its setters away. */
export function freezeSet<T>(set: Set<T>): Set<T> {
  return Object.freeze(Object.defineProperties(set, setGuard));
}
