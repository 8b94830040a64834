import { type SchemaIssue as Issue, SchemaError } from "../errors.js";

/**
 * The Standard Schema interface, version 1, as zod, valibot, arktype and others implement it. `Input` is what a
 * schema accepts, `Output` what it returns.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  /** Version 1 of the interface. */
  readonly "~standard": {
    /** The version of the interface. */
    readonly version: 1;
    /** The library that the schema comes from. */
    readonly vendor: string;
    /** Checks a value: returns the parsed value, or what is wrong with it. */
    validate(value: unknown): StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Exists for types only. */
    readonly types?: StandardTypes<Input, Output> | undefined;
  };
}

/** The types of a schema; never there at run time. @inline */
interface StandardTypes<Input, Output> {
  /** What it takes. */
  readonly input: Input;
  /** What it gives. */
  readonly output: Output;
}

/** What a schema says of a value: the value, or what is wrong with it. */
export type StandardResult<Output> =
  | {
      /** The value as the schema made it. */
      readonly value: Output;
      /** Nothing is wrong. */
      readonly issues?: undefined;
    }
  | {
      /** What is wrong. */
      readonly issues: readonly StandardIssue[];
    };

/** One part of where something is wrong. */
interface StandardPathSegment {
  /** The key or index. */
  readonly key: PropertyKey;
}

/** One thing that is wrong with a value, as a schema says it. @inline */
interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where. */
  readonly path?: readonly (PropertyKey | StandardPathSegment)[] | undefined;
}

/** Making a JSON Schema takes long, and it is asked for at each start and each pause. */
const jsonSchemas = new WeakMap<StandardSchema, object | undefined>();

/** The JSON Schema of what a schema takes; `undefined` where its library gives none. */
export function jsonSchemaOf(schema: StandardSchema): object | undefined {
  if (!jsonSchemas.has(schema)) jsonSchemas.set(schema, toJsonSchema(schema));
  return jsonSchemas.get(schema);
}

function toJsonSchema(schema: StandardSchema): object | undefined {
  const { jsonSchema } = schema["~standard"] as { readonly jsonSchema?: unknown };
  if (typeof jsonSchema !== "object" || jsonSchema === null) return undefined;
  const input: unknown = Reflect.get(jsonSchema, "input");
  if (typeof input !== "function") return undefined;
  try {
    const json: unknown = Reflect.apply(input, jsonSchema, [{ target: "draft-2020-12" }]);
    return typeof json === "object" && json !== null ? json : undefined;
  } catch {
    // A date, or a function that checks, has no JSON Schema.
    return undefined;
  }
}

/** Whether a value is a schema. */
export function isSchema(value: unknown): value is StandardSchema {
  // Some schemas are functions.
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  const standard: unknown = Reflect.get(value, "~standard");
  return (
    typeof standard === "object" &&
    standard !== null &&
    typeof Reflect.get(standard, "validate") === "function"
  );
}

/**
 * A value as its schema gives it.
 *
 * @throws SchemaError with all that is wrong.
 */
export async function validated(
  name: string,
  value: unknown,
  schema: StandardSchema,
): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (result?.issues === undefined) return result?.value;
  throw new SchemaError(name, result.issues.map(toIssue));
}

function toIssue({ message, path = [] }: StandardIssue): Issue {
  const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
  return { path: keys.join("."), message };
}
