// The constructor that all typed arrays inherit from has no name of its own.
const TypedArray = Object.getPrototypeOf(Uint8Array) as Uint8ArrayConstructor;

/** The name of a typed array's type, if it is one that a checkpoint can hold. */
export function typedArrayName(value: object): string | undefined {
  if (!(value instanceof TypedArray)) return undefined;
  const { name } = value.constructor;
  return typedArrays.has(name) ? name : undefined;
}

/** The typed arrays that a checkpoint can hold, and how each is made from its bytes. */
export const typedArrays: ReadonlyMap<string, (buffer: ArrayBuffer) => object> = new Map<
  string,
  (buffer: ArrayBuffer) => object
>([
  ["Int8Array", (buffer) => new Int8Array(buffer)],
  ["Uint8Array", (buffer) => new Uint8Array(buffer)],
  ["Uint8ClampedArray", (buffer) => new Uint8ClampedArray(buffer)],
  ["Int16Array", (buffer) => new Int16Array(buffer)],
  ["Uint16Array", (buffer) => new Uint16Array(buffer)],
  ["Int32Array", (buffer) => new Int32Array(buffer)],
  ["Uint32Array", (buffer) => new Uint32Array(buffer)],
  ["Float32Array", (buffer) => new Float32Array(buffer)],
  ["Float64Array", (buffer) => new Float64Array(buffer)],
  ["BigInt64Array", (buffer) => new BigInt64Array(buffer)],
  ["BigUint64Array", (buffer) => new BigUint64Array(buffer)],
  // Node's Buffer, where there is one.
  [
    "Buffer",
    (buffer) =>
      (globalThis as { Buffer?: { from(buffer: ArrayBuffer): object } }).Buffer?.from(buffer) ??
      new Uint8Array(buffer),
  ],
]);
