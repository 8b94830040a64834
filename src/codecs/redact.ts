import type { AnyEvent, Observer } from "../events.js";
import type { StateJSON } from "../state/json.js";
import { define, MAX_DEPTH } from "../state/shape.js";
import { State } from "../state/state.js";
import { checkRedaction, type Positions, REDACTED, type Redaction, Secrets } from "./patterns.js";
import { redactState } from "./redact-state.js";

export { checkRedaction, REDACTED, type Redaction };

/**
 * A copy of a value without its secrets; parts without any are shared with the original, which is never
 * changed. A pattern is a path of keys from the value down, without regard to case: `data.apiKey`. A `*`
 * matches one or more keys, a leading one also none, so `*.token` matches every `token`; within a key it
 * matches any characters, as in `*.*secret*`. The index of an item and the key of a Map are keys like any
 * other. Matches of a regular expression are replaced in every string.
 *
 * The result is safe to print: Maps, Sets, Errors, States and the fields of class instances are searched, and
 * a part that contains itself becomes `[circular]`. Where a `toJSON` reveals a secret, or a State holds one,
 * the redacted JSON is returned instead.
 *
 * @throws ConfigError if `patterns` is not a list of patterns.
 *
 * @example
 * ```ts
 * import { redact } from "waymark/codecs";
 *
 * const shown = redact({ user: "ada", login: { token: "t0p" }, say: "sk-1234!" }, ["*.token", /sk-\w+/]);
 * console.log(JSON.stringify(shown)); // {"user":"ada","login":{"token":"[redacted]"},"say":"[redacted]!"}
 * ```
 */
export function redact(value: unknown, patterns: Redaction): unknown {
  return redactor(patterns)(value);
}

/**
 * Like {@link redact}, for patterns that are used repeatedly: they are parsed only once.
 *
 * @throws ConfigError if `patterns` is not a list of patterns.
 *
 * @example
 * ```ts
 * import { redactor } from "waymark/codecs";
 *
 * const clean = redactor(["*.token", "*.*secret*"]);
 * console.log(JSON.stringify(clean({ a: { token: "t0p", clientSecret: "x" } }))); // {"a":{"token":"[redacted]","clientSecret":"[redacted]"}}
 * ```
 */
export function redactor(patterns: Redaction): (value: unknown) => unknown {
  const secrets = new Secrets(patterns);
  return (value) => new Walk(secrets).value(value, secrets.start);
}

/**
 * Wraps an observer so that it receives events without their secrets. Paths are those of the event's `data`.
 *
 * @throws ConfigError if `patterns` is not a list of patterns.
 *
 * @example
 * ```ts
 * import { consoleObserver, StateGraph } from "waymark";
 * import { redactEvents } from "waymark/codecs";
 *
 * const observer = redactEvents(consoleObserver(), ["rationale", /sk-\w+/]);
 * console.log(new StateGraph({ name: "quiet", observer }).name); // quiet
 * ```
 */
export function redactEvents(observer: Observer, patterns: Redaction): Observer {
  const clean = redactor(patterns);
  const emit = typeof observer === "function" ? observer : observer.onEvent.bind(observer);
  return (event) => emit({ ...event, data: clean(event.data) } as AnyEvent);
}

/** One walk through one value. */
class Walk {
  readonly #secrets: Secrets;
  readonly #above = new Set<object>();

  constructor(secrets: Secrets) {
    this.#secrets = secrets;
  }

  value(value: unknown, positions: Positions): unknown {
    if (typeof value === "string") return this.#secrets.clean(value);
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
    if (positions.length === 0 && !this.#secrets.hasExpressions) return value;
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
    const json = jsonOf(value);
    if (json === REDACTED) return json;
    if (json !== value) {
      const own = value instanceof State ? redactState(json as StateJSON, this.#secrets) : json;
      const kept = this.value(own, positions);
      if (!Object.is(kept, json)) return kept;
    }
    return this.#fields(value, positions);
  }

  #at(key: string, value: unknown, positions: Positions): unknown {
    const { hit, next } = this.#secrets.advance(positions, key);
    return hit ? REDACTED : this.value(value, next);
  }

  /** `undefined` if nothing in it changed. */
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
      // A key that can't be a name is identified by its position.
      const place = typeof key === "object" ? String(copy.size) : String(key);
      const below = this.#secrets.advance(positions, place).next;
      const keptKey = typeof key === "object" ? this.value(key, below) : key;
      const kept = this.#at(place, item, positions);
      copy.set(keptKey, kept);
      same &&= Object.is(kept, item) && Object.is(keptKey, key);
    }
    return same ? map : copy;
  }

  #fields(value: object, positions: Positions): object {
    const keys = Object.keys(value);
    // An Error's own fields are not enumerable, and its stack contains its message.
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

/** What `JSON.stringify` would print for an object. */
function jsonOf(value: object): unknown {
  if (!("toJSON" in value) || typeof value.toJSON !== "function") return value;
  try {
    return value.toJSON();
  } catch {
    // What can't be inspected is not shown.
    return REDACTED;
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
  define(copy, key, value, Object.prototype.propertyIsEnumerable.call(copy, key));
}
