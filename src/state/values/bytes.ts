import { OPAQUE, remember } from "../json-traits.js";
import { Refusal } from "../refusal.js";
import { attempt, type Kind, malformed } from "./kind.js";

// The constructor that all typed arrays inherit from has no name of its own.
const TypedArray = Object.getPrototypeOf(Uint8Array) as Uint8ArrayConstructor;

type Make = new (buffer: ArrayBuffer) => object;

interface Newer {
  /** Node 24 and newer. */
  readonly Float16Array?: Make;
  readonly Buffer?: { from(buffer: ArrayBuffer): object };
}
const { Float16Array }: Newer = globalThis as object;

const types: readonly Make[] = [
  ...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array],
  ...[Float32Array, Float64Array, BigInt64Array, BigUint64Array],
  ...(Float16Array === undefined ? [] : [Float16Array]),
];

/** The types that a checkpoint can hold, and how each is made from its bytes. */
const makers: ReadonlyMap<unknown, (buffer: ArrayBuffer) => object> = new Map<
  unknown,
  (buffer: ArrayBuffer) => object
>([
  ["ArrayBuffer", (buffer) => buffer],
  // Node's Buffer, where there is one.
  ["Buffer", (buffer) => (globalThis as Newer).Buffer?.from(buffer) ?? new Uint8Array(buffer)],
  ...types.map((Type) => [Type.name, (buffer: ArrayBuffer) => new Type(buffer)] as const),
]);

// Not the value's own `slice`: that of Node's Buffer does not copy.
const sliceTyped: (start: number) => object = Uint8Array.prototype.slice;

/** Buffers and typed arrays. They can't be frozen, but the State at least has a copy of its own. */
export const bytesKind: Kind<ArrayBuffer | Uint8Array> = {
  tag: "$bytes",
  prototype: ArrayBuffer.prototype,
  is: (value) => value instanceof TypedArray && makers.has(value.constructor.name),
  opaque: true,
  copy: (value) => {
    try {
      const copy = value instanceof ArrayBuffer ? value.slice(0) : sliceTyped.call(value, 0);
      return remember(copy, OPAQUE);
    } catch {
      // The buffer was transferred. A save rejects it.
      return value;
    }
  },
  encode: (value) => ({ $bytes: [value.constructor.name, toBase64(bytesOf(value))] }),
  decode: (content) =>
    attempt(() => {
      const [type, base64] = content as unknown[];
      if (typeof base64 !== "string") return malformed;
      return makers.get(type)?.(fromBase64(base64)) ?? malformed;
    }),
};

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  // In pieces, because a call takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 8192)
    binary += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(binary);
}

function bytesOf(value: ArrayBuffer | Uint8Array): Uint8Array {
  try {
    return value instanceof ArrayBuffer
      ? new Uint8Array(value)
      : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  } catch {
    throw new Refusal("is a buffer whose bytes were given away: copy it before you transfer it");
  }
}

function fromBase64(text: string): ArrayBuffer {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes.buffer;
}
