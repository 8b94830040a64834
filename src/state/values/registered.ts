import { asText, ConfigError, show } from "../../errors.js";
import { callable, checkOptions, text } from "../../options.js";
import { Refusal } from "../refusal.js";
import { type Kind, malformed } from "./kind.js";

/** A class with any constructor, including a private one. */
export interface Class<T extends object> {
  /** The prototype of its instances. */
  readonly prototype: T;
}

/** How instances of a class are converted to data and back. */
export interface TypeDefinition<T extends object, Data> {
  /** The class itself. A subclass is another type and must be registered separately. */
  readonly class: Class<T>;
  /** The data to save for an instance: anything that a State can hold, including other registered types. */
  readonly toData: (value: T) => Data;
  /** Creates an instance from that data, which is frozen. */
  readonly fromData: (data: Data) => T;
}

interface Registered {
  readonly name: string;
  readonly prototype: object;
  readonly toData: (value: object) => unknown;
  readonly fromData: (data: unknown) => unknown;
}

const byName = new Map<string, Registered>();
const byPrototype = new Map<unknown, Registered>();

/**
 * Lets every State hold instances of a class. A checkpoint stores the name and the data; it loads only where
 * the name is registered. An instance is kept as it is, neither copied nor frozen, so its class should be
 * immutable.
 *
 * A class may have several names, to read what an older version wrote; the one registered last is written.
 *
 * @throws ConfigError if the name belongs to another class, or the definition is invalid.
 *
 * @example
 * ```ts
 * import { State } from "waymark";
 * import { registerType } from "waymark/codecs";
 *
 * class Money {
 *   constructor(readonly cents: bigint, readonly currency: string) {}
 * }
 * registerType("Money", {
 *   class: Money,
 *   toData: ({ cents, currency }) => ({ cents, currency }),
 *   fromData: ({ cents, currency }) => new Money(cents, currency),
 * });
 *
 * const state = State.create({ price: new Money(995n, "EUR") });
 * const again = State.fromJSON<{ price: Money }>(state.toJSON());
 * console.log(again.data.price instanceof Money); // true
 * ```
 */
export function registerType<T extends object, Data>(
  name: string,
  definition: TypeDefinition<T, Data>,
): void {
  text("name", name);
  const owner = `type ${show(name)}`;
  checkOptions(owner, definition, { class: callable, toData: callable, fromData: callable });
  for (const key of ["class", "toData", "fromData"] as const) {
    callable(`${owner}.${key}`, definition[key]);
  }
  const prototype: unknown = definition.class.prototype;
  if (typeof prototype !== "object" || prototype === null) {
    throw new ConfigError(`${owner}.class`, `must be a class; got ${show(definition.class)}`);
  }
  const known = byName.get(name);
  if (known !== undefined && known.prototype !== prototype) {
    throw new ConfigError("name", `${show(name)} is the name of another class already`);
  }
  // The two functions only ever receive instances of the class and data from its toData.
  const { toData, fromData } = definition as unknown as Registered;
  const registered = { name, prototype, toData, fromData };
  byName.set(name, registered);
  byPrototype.set(prototype, registered);
}

/** The instances of registered classes, which are kept as they are. */
export const registeredKind: Kind<object> = {
  tag: "$type",
  is: (_value, prototype) => byPrototype.has(prototype),
  opaque: true,
  copy: (value) => value,
  encode: (value, walk) => {
    const type = byPrototype.get(Object.getPrototypeOf(value)) as Registered;
    let data: unknown;
    try {
      data = type.toData(value);
    } catch (error) {
      throw new Refusal(`is a ${type.name} whose toData failed: ${asText(error)}`);
    }
    return { $type: [type.name, walk.encode(data)] };
  },
  decode: (content, walk, depth) => {
    if (!Array.isArray(content) || content.length !== 2) return malformed;
    const [name, data] = content as unknown[];
    return typeof name === "string" ? instanceOf(name, walk.decode(data, depth)) : malformed;
  },
};

/** Restores an instance from its data. */
function instanceOf(name: string, data: unknown): object {
  const type = byName.get(name);
  if (type === undefined) {
    throw new Refusal(
      `holds the type ${show(name)}, which is unknown here: register it before loading`,
    );
  }
  let value: unknown;
  try {
    value = type.fromData(data);
  } catch (error) {
    throw new Refusal(`holds a ${name} whose fromData failed: ${asText(error)}`);
  }
  if (
    typeof value !== "object" ||
    value === null ||
    Object.getPrototypeOf(value) !== type.prototype
  ) {
    throw new Refusal(`holds a ${name} whose fromData returned ${show(value)}`);
  }
  return value;
}
