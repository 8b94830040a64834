/** A mutable copy: values from a checkpoint are frozen. */
export function copyOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  if (value instanceof Date) return new Date(value);
  if (value instanceof URL) return new URL(value);
  if (value instanceof ArrayBuffer) return value.slice(0);
  // Not its own `slice`: that of Node's Buffer does not copy.
  if (value instanceof Uint8Array) return Uint8Array.prototype.slice.call(value);
  if (value instanceof Map) {
    return new Map([...value].map(([key, item]) => [copyOf(key), copyOf(item)]));
  }
  if (value instanceof Set) return new Set([...value].map(copyOf));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copyOf(item)]));
}
