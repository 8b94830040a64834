import { ConfigError } from "../errors.js";

/** The part of the Standard Schema interface that is used here; zod, valibot, arktype and others have it. */
export interface StandardSchema {
  /** Version 1 of the interface. */
  readonly "~standard": {
    /** Checks a value: the value it became, or what is wrong with it. */
    validate(value: unknown): SchemaResult | Promise<SchemaResult>;
  };
}

/** What a schema says of a value: the value, or what is wrong with it. */
export interface SchemaResult {
  /** The value as the schema made it. */
  readonly value?: unknown;
  /** What is wrong; `undefined` when nothing is. */
  readonly issues?: readonly SchemaIssue[] | undefined;
}

/** One thing that is wrong with a value. */
export interface SchemaIssue {
  /** What is wrong. */
  readonly message: string;
  /** Where. */
  readonly path?: readonly (PropertyKey | SchemaPathSegment)[] | undefined;
}

/** One part of where something is wrong. */
export interface SchemaPathSegment {
  /** The key or index. */
  readonly key: PropertyKey;
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
 * @throws ConfigError that lists what is wrong.
 */
export async function validated(
  name: string,
  value: unknown,
  schema: StandardSchema,
): Promise<unknown> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const problems = result.issues.map(({ message, path = [] }) => {
    const where = path.map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return where === "" ? message : `${where}: ${message}`;
  });
  throw new ConfigError(name, `is not what the run waits for: ${problems.join("; ")}`);
}
