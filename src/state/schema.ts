import { type SchemaIssue as Issue, SchemaError } from "../errors.js";
import { hasMethods } from "../options.js";

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

/** The types of a schema; absent at run time. */
export interface StandardTypes<Input, Output> {
  /** What it accepts. */
  readonly input: Input;
  /** What it returns. */
  readonly output: Output;
}

/** A schema's result for a value: the parsed value, or what is wrong with it. */
export type StandardResult<Output> =
  | {
      /** The parsed value. */
      readonly value: Output;
      /** Absent, as nothing is wrong. */
      readonly issues?: undefined;
    }
  | {
      /** What is wrong. */
      readonly issues: readonly StandardIssue[];
    };

/** One segment of the path to an issue. */
export interface StandardPathSegment {
  /** The key or index. */
  readonly key: PropertyKey;
}

/** One thing that a schema finds wrong with a value. */
export interface StandardIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where. */
  readonly path?: readonly (PropertyKey | StandardPathSegment)[] | undefined;
}

/** Generating a JSON Schema is slow, and one is needed at each start and each pause. */
const jsonSchemas = new WeakMap<StandardSchema, object | undefined>();

/** The JSON Schema of a schema's input; `undefined` if its library can't produce one. */
export function jsonSchemaOf(schema: StandardSchema): object | undefined {
  if (!jsonSchemas.has(schema)) jsonSchemas.set(schema, toJsonSchema(schema));
  return jsonSchemas.get(schema);
}

/** How a library produces a JSON Schema, if it can. */
interface JsonSchemaProps {
  readonly jsonSchema?: { input?(options: { readonly target: string }): unknown } | null;
}

function toJsonSchema(schema: StandardSchema): object | undefined {
  const { jsonSchema } = schema["~standard"] as JsonSchemaProps;
  try {
    const json = jsonSchema?.input?.({ target: "draft-2020-12" });
    return typeof json === "object" && json !== null ? json : undefined;
  } catch {
    // A date or a custom check, for example, has no JSON Schema.
    return undefined;
  }
}

/** Whether a value is a schema. */
export function isSchema(value: unknown): value is StandardSchema {
  // Some schemas are functions.
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return false;
  return hasMethods(Reflect.get(value, "~standard"), "validate");
}

/**
 * Validates a value; returns what its schema returns.
 *
 * @throws SchemaError with all issues.
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
