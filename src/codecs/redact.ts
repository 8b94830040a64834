import { MAX_DEPTH } from "../state/own.js";
import { Patterns, type Positions } from "./patterns.js";

/**
 * What stands in place of a value that was taken out.
 *
 * @example
 * ```ts
 * import { REDACTED, redact } from "waymark/codecs";
 *
 * console.log(JSON.stringify(redact({ token: "t0p" }, ["token"])).includes(REDACTED)); // true
 * ```
 */
export const REDACTED = "[redacted]";

/**
 * A copy of a value without its secrets; parts without any are shared with the original, which is
 * never changed. A pattern is a path of keys from the value down, without regard to case: `data.apiKey`.
 * A `*` stands for one key or more, a first one also for none, so `*.token` is every `token`
 * there is; within a key it stands for any characters, as in `*.*secret*`. The index of an item and
 * the key of a Map are keys like any other.
 *
 * Prints safely whatever it is given: Maps, Sets, Errors and the fields of class instances are looked into,
 * a part that contains itself becomes `[circular]`.
 *
 * @throws ConfigError when it is not given a list of patterns.
 *
 * @example
 * ```ts
 * import { redact } from "waymark/codecs";
 *
 * const shown = redact({ user: "ada", login: { token: "t0p" } }, ["*.token"]);
 * console.log(JSON.stringify(shown)); // {"user":"ada","login":{"token":"[redacted]"}}
 * ```
 */
export function redact(value: unknown, patterns: readonly string[]): unknown {
  return redactor(patterns)(value);
}

/**
 * What {@link redact} does, for patterns that are used again and again: they are read only once.
 *
 * @throws ConfigError when it is not given a list of patterns.
 *
 * @example
 * ```ts
 * import { redactor } from "waymark/codecs";
 *
 * const clean = redactor(["*.token", "*.*secret*"]);
 * console.log(JSON.stringify(clean({ a: { token: "t0p", clientSecret: "x" } }))); // {"a":{"token":"[redacted]","clientSecret":"[redacted]"}}
 * ```
 */
export function redactor(patterns: readonly string[]): (value: unknown) => unknown {
  const compiled = new Patterns(patterns);
  return (value) => new Walk(compiled).value(value, compiled.start);
}

/** One walk through one value. */
class Walk {
  readonly #patterns: Patterns;
  readonly #above = new Set<object>();

  constructor(patterns: Patterns) {
    this.#patterns = patterns;
  }

  value(value: unknown, positions: Positions): unknown {
    if (typeof value !== "object" || value === null || positions.length === 0) return value;
    if (ArrayBuffer.isView(value)) return value;
    if (this.#above.has(value)) return "[circular]";
    if (this.#above.size >= MAX_DEPTH) return REDACTED;
    this.#above.add(value);
    const copy = this.#object(value, positions);
    this.#above.delete(value);
    return copy;
  }

  #object(value: object, positions: Positions): unknown {
    if (value instanceof Map) return this.#map(value, positions);
    if (value instanceof Set) {
      const items = this.#array([...value], positions);
      return items === undefined ? value : new Set(items);
    }
    if (Array.isArray(value)) return this.#array(value, positions) ?? value;
    return this.#fields(value, positions);
  }

  #at(key: string, value: unknown, positions: Positions): unknown {
    const { hit, next } = this.#patterns.advance(positions, key);
    return hit ? REDACTED : this.value(value, next);
  }

  /** `undefined` when nothing in it changed. */
  #array(items: readonly unknown[], positions: Positions): unknown[] | undefined {
    let copy: unknown[] | undefined;
    items.forEach((item, index) => {
      const kept = this.#at(String(index), item, positions);
      if (Object.is(kept, item)) return;
      copy ??= items.slice();
      copy[index] = kept;
    });
    return copy;
  }

  #map(map: Map<unknown, unknown>, positions: Positions): Map<unknown, unknown> {
    const copy = new Map<unknown, unknown>();
    let same = true;
    for (const [key, item] of map) {
      // What can't be a name goes by its place.
      const place = typeof key === "object" ? String(copy.size) : String(key);
      const keptKey = this.value(key, this.#patterns.advance(positions, place).next);
      const kept = this.#at(place, item, positions);
      copy.set(keptKey, kept);
      same &&= Object.is(kept, item) && Object.is(keptKey, key);
    }
    return same ? map : copy;
  }

  #fields(value: object, positions: Positions): object {
    const keys = Object.keys(value);
    // What an Error says of itself is not enumerable, and its stack begins with its message.
    if (value instanceof Error) keys.push(...hidden.filter((key) => Object.hasOwn(value, key)));
    let copy: object | undefined;
    for (const key of keys) {
      const item: unknown = Reflect.get(value, key);
      const kept = this.#at(key, item, positions);
      if (Object.is(kept, item)) continue;
      copy ??= copyOf(value);
      replace(copy, key, kept);
      if (key === "message" && Object.hasOwn(value, "stack")) replace(copy, "stack", REDACTED);
    }
    return copy ?? value;
  }
}

const hidden = ["stack", "message", "cause", "errors"];

function copyOf(value: object): object {
  const fields: PropertyDescriptorMap = Object.getOwnPropertyDescriptors(value);
  for (const field of Object.values(fields)) {
    field.configurable = true;
    if ("value" in field) field.writable = true;
  }
  return Object.create(Object.getPrototypeOf(value) as object | null, fields);
}

function replace(copy: object, key: string, value: unknown): void {
  const enumerable = Object.prototype.propertyIsEnumerable.call(copy, key);
  Object.defineProperty(copy, key, { value, enumerable, configurable: true, writable: true });
}
