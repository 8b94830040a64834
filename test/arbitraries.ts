import * as fc from "fast-check";

/** Keys that are easy to get wrong, and others. */
const key = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: "binary", maxLength: 6 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "__proto__",
      "constructor",
      "toJSON",
      "length",
      "0",
      "$object",
      "$date",
      "$undefined",
      "$map",
      "$error",
      "$",
    ),
  },
);

const bytes = fc.uint8Array({ maxLength: 4 }).map((array) => new Uint8Array(array));

const typedArray = fc.oneof(
  bytes,
  bytes.map(({ buffer }) => buffer),
  bytes.map((array) => Buffer.from(array)),
  fc.int8Array({ maxLength: 3 }),
  fc.uint8ClampedArray({ maxLength: 3 }),
  fc.int16Array({ maxLength: 3 }),
  fc.uint16Array({ maxLength: 3 }),
  fc.int32Array({ maxLength: 3 }),
  fc.uint32Array({ maxLength: 3 }),
  fc.float32Array({ maxLength: 3 }),
  fc.float64Array({ maxLength: 3 }),
  fc.bigInt64Array({ maxLength: 3 }),
  fc.bigUint64Array({ maxLength: 3 }),
);

const leaf = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0),
  fc.boolean(),
  fc.constantFrom(null, undefined),
  fc.bigInt(),
  // Invalid ones have tests of their own: Node 20 says that no two of them are equal.
  fc.date({ noInvalidDate: true }),
  fc.webUrl().map((href) => new URL(href)),
  fc.constantFrom(/a+/, /[\n/]/giu, /(?<name>x)|y/dsy).map((regexp) => new RegExp(regexp)),
  typedArray,
);

const { value } = fc.letrec<{ value: unknown; error: Error }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.sparseArray(tie("value"), { maxLength: 6, maxNumElements: 3 }),
    fc.dictionary(key, tie("value"), { maxKeys: 4, noNullPrototype: true }),
    fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((items) => new Map(items)),
    fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
    tie("value").map((shared) => [shared, { shared }]),
    tie("error"),
  ),
  error: fc
    .record({
      type: fc.constantFrom(Error, TypeError, RangeError, SyntaxError, URIError, EvalError),
      message: fc.string({ maxLength: 6 }),
      name: fc.option(fc.constantFrom("HttpError", "AbortError"), { nil: undefined }),
      cause: tie("value"),
      status: tie("value"),
    })
    .map(({ type, message, name, cause, status }) => {
      const error = Object.assign(new type(message, { cause }), { status });
      if (name !== undefined) error.name = name;
      return error;
    }),
}));

/** Every kind of value that a State can hold and save, nested. */
export const stateData: fc.Arbitrary<Record<string, unknown>> = fc.dictionary(key, value, {
  maxKeys: 5,
  noNullPrototype: true,
});

/** Data that JSON holds as it is. */
export const jsonData: fc.Arbitrary<Record<string, unknown>> = fc
  .dictionary(
    fc.string({ maxLength: 5 }).map((name) => name.replace("$", "_")),
    fc.jsonValue({ maxDepth: 3 }),
    { noNullPrototype: true },
  )
  .map((data) => JSON.parse(JSON.stringify(data).replaceAll('"$', '"_')));
