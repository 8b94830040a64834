// The constructor that all typed arrays inherit from has no name of its own.
const TypedArray = Object.getPrototypeOf(Uint8Array) as Uint8ArrayConstructor;

interface Newer {
  /** Node 24 and newer. */
  readonly Float16Array?: new (
    buffer: ArrayBuffer,
  ) => object;
  readonly Buffer?: { from(buffer: ArrayBuffer): object };
}
const { Float16Array }: Newer = globalThis as object;

const types: readonly (new (buffer: ArrayBuffer) => object)[] = [
  ...[Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array],
  ...[Float32Array, Float64Array, BigInt64Array, BigUint64Array],
  ...(Float16Array === undefined ? [] : [Float16Array]),
];

/** The typed arrays that a checkpoint can hold, and how each is made from its bytes. */
export const typedArrays: ReadonlyMap<string, (buffer: ArrayBuffer) => object> = new Map([
  ...types.map((Type) => [Type.name, (buffer: ArrayBuffer) => new Type(buffer)] as const),
  // Node's Buffer, where there is one.
  [
    "Buffer",
    (buffer) => (globalThis as Newer).Buffer?.from(buffer) ?? new Uint8Array(buffer),
  ] as const,
]);

/** The name of a typed array's type, if it is one that a checkpoint can hold. */
export function typedArrayName(value: object): string | undefined {
  if (!(value instanceof TypedArray)) return undefined;
  const { name } = value.constructor;
  return typedArrays.has(name) ? name : undefined;
}
