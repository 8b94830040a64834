import type { TaggedValue } from "../../api.js";

/** The part of JSON Schema that forms are made of. Whatever else a schema says, the server checks. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

/** How a field is filled in. */
export type FieldKind =
  | "text"
  | "long"
  | "number"
  | "boolean"
  | "choice"
  | "object"
  | "list"
  | "json";

/** What is typed into a form before it is JSON: an absent field is `undefined`. */
export type Draft = TaggedValue | undefined;

/** How a value of a schema is filled in. */
export function kindOf(schema: Schema): FieldKind {
  if (choicesOf(schema) !== undefined) return "choice";
  const type = typeOf(schema);
  if (type === "boolean") return "boolean";
  if (type === "number" || type === "integer") return "number";
  if (type === "string") return (schema.maxLength ?? 0) > 120 ? "long" : "text";
  if (type === "object" && schema.properties !== undefined) return "object";
  if (type === "array" && schema.items !== undefined) {
    return ["text", "number", "choice", "object"].includes(kindOf(schema.items)) ? "list" : "json";
  }
  return "json";
}

/** The values to choose from; `undefined` if any will do. */
export function choicesOf(schema: Schema): readonly TaggedValue[] | undefined {
  if (schema.enum !== undefined) return schema.enum as readonly TaggedValue[];
  if (schema.const !== undefined) return [schema.const as TaggedValue];
  const either = schema.anyOf ?? schema.oneOf;
  const isConstant = either?.every((one) => one.const !== undefined);
  return isConstant ? either?.map((one) => one.const as TaggedValue) : undefined;
}

/** The type of a schema; where it may also be null, the other one. */
export function typeOf({ type }: Schema): string | undefined {
  if (typeof type === "string") return type;
  const types = type?.filter((one) => one !== "null") ?? [];
  return types.length === 1 ? types[0] : undefined;
}

/** What a form starts with. */
export function initialOf(schema: Schema): Draft {
  if (schema.default !== undefined) return schema.default as TaggedValue;
  const choices = choicesOf(schema);
  if (choices?.length === 1) return choices[0];
  if (kindOf(schema) === "list") return [];
  if (kindOf(schema) !== "object") return undefined;
  const fields: Record<string, TaggedValue> = {};
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    const value = initialOf(inner);
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/** A text as JSON, or why it is not. */
export function parseJson(text: string): { value: TaggedValue } | { problem: string } {
  try {
    return { value: JSON.parse(text) as TaggedValue };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : "not JSON" };
  }
}

/** A name of a field as a person reads it: `approvedBy` is "Approved by". */
export function titleOf(name: string, { title }: Schema): string {
  if (title !== undefined && title !== "") return title;
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[_-]+/g, " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}
