/*
 * A frozen Date, Map or Set can still be modified, since its contents are not fields. Those that belong to a
 * State have their mutating methods replaced by ones that throw.
 */

function refuseMutation(): never {
  throw new TypeError(
    "this value belongs to a State, which never changes: use state.update, or return a new value",
  );
}

/** Freezes values whose methods change more than their fields. */
export class Guard<T extends object> {
  readonly #methods: PropertyDescriptorMap;
  readonly #first: string;

  constructor(...methods: readonly [string, ...string[]]) {
    this.#methods = Object.fromEntries(
      methods.map((method) => [method, { value: refuseMutation }]),
    );
    this.#first = methods[0];
  }

  /** Freezes a value and replaces its mutating methods. */
  freeze(value: T): T {
    return Object.freeze(Object.defineProperties(value, this.#methods));
  }

  /** Whether a value was frozen by this guard. */
  has(value: T): boolean {
    return Object.isFrozen(value) && Reflect.get(value, this.#first) === refuseMutation;
  }
}
