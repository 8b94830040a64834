import type { TaggedValue } from "../../api.js";

/** The part of JSON Schema that forms are made of. Whatever else a schema says, the server checks. */
export interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly definitions?: Readonly<Record<string, Schema>>;
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly propertyNames?: Schema;
  readonly required?: readonly string[];
  readonly items?: Schema | boolean;
  readonly prefixItems?: readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

/** How a field is filled in. */
export type FieldKind =
  | "text"
  | "number"
  | "boolean"
  | "constant"
  | "choice"
  | "nullable"
  | "union"
  | "object"
  | "record"
  | "list"
  | "json";

/** What is typed into a form before it is JSON: an absent field is `undefined`. */
export type Draft = TaggedValue | undefined;

/** How a value of a schema is filled in. */
export function kindOf(schema: Schema): FieldKind {
  const choices = choicesOf(schema);
  if (choices !== undefined) return choices.length === 1 ? "constant" : "choice";
  const alternatives = alternativesOf(schema);
  if (alternatives !== undefined) {
    const rest = alternatives.filter((one) => !isNull(one));
    return rest.length === 1 && rest.length < alternatives.length ? "nullable" : "union";
  }
  switch (schema.type) {
    case "boolean":
      return "boolean";
    case "number":
    case "integer":
      return "number";
    case "string":
      return "text";
    case "object":
      if (Object.keys(schema.properties ?? {}).length > 0) return "object";
      return typeof schema.additionalProperties === "object" ? "record" : "json";
    case "array":
      return schema.prefixItems !== undefined || typeof schema.items === "object" ? "list" : "json";
    default:
      return "json";
  }
}

/** The values to choose from; `undefined` if any will do. */
export function choicesOf(schema: Schema): readonly TaggedValue[] | undefined {
  if (schema.enum !== undefined) return schema.enum as readonly TaggedValue[];
  if (schema.const !== undefined) return [schema.const as TaggedValue];
  if (isNull(schema)) return [null];
  const either = schema.anyOf ?? schema.oneOf;
  const isConstant = either?.every((one) => one.const !== undefined);
  return isConstant ? either?.map((one) => one.const as TaggedValue) : undefined;
}

/** The schemas of which a value has to fit one; `undefined` if there is only this one. */
export function alternativesOf(schema: Schema): readonly Schema[] | undefined {
  const { anyOf, oneOf, type, ...rest } = schema;
  const either = anyOf ?? oneOf;
  if (either !== undefined) return either.length > 1 ? either : undefined;
  if (type === undefined || typeof type === "string") return undefined;
  const { title: _, description: __, default: ___, ...same } = rest;
  return type.map((one) => ({ ...same, type: one }));
}

export function isNull({ type }: Schema): boolean {
  return type === "null";
}

/** A schema with what it refers to in its place. A schema of objects is merged with those that it extends. */
export function resolved(schema: Schema, root: Schema): Schema {
  let whole = schema;
  // A name that refers to itself would never end.
  for (let hops = 0; whole.$ref !== undefined && hops < 20; hops++) {
    const { $ref, ...own } = whole;
    whole = { ...target($ref, root), ...own };
  }
  const either = whole.anyOf ?? whole.oneOf;
  if (either?.length === 1) {
    const { anyOf: _, oneOf: __, ...own } = whole;
    return resolved({ ...either[0], ...own }, root);
  }
  const parts = whole.allOf?.map((part) => resolved(part, root));
  if (parts === undefined) return whole;
  const { allOf: _, ...own } = whole;
  const all = [...parts, own];
  return {
    ...Object.assign({}, ...all),
    properties: Object.assign({}, ...all.map(({ properties }) => properties)),
    required: all.flatMap(({ required = [] }) => required),
  };
}

function target(ref: string, root: Schema): Schema {
  const [, place, name = ""] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(ref) ?? [];
  if (ref === "#") return root;
  const known = place === undefined ? {} : root[place as "$defs" | "definitions"];
  return (known && Object.hasOwn(known, name) ? known[name] : undefined) ?? {};
}

/** What a form starts with. */
export function initialOf(given: Schema, root: Schema): Draft {
  const schema = resolved(given, root);
  if (schema.default !== undefined) return schema.default as TaggedValue;
  switch (kindOf(schema)) {
    case "constant":
      return choicesOf(schema)?.[0];
    case "list":
      return Array.from({ length: fewestOf(schema) }, (_, index) =>
        initialOf(itemSchemaOf(schema, index), root),
      ).map((item) => item ?? "");
    case "record":
      return Object.fromEntries(
        (schema.required ?? []).map((key) => [key, initialOf(valueSchemaOf(schema), root) ?? ""]),
      );
    case "object":
      return objectOf(schema, root);
    default:
      return undefined;
  }
}

/** What is optional and has no default is left out until it is asked for. */
function objectOf({ properties = {}, required = [] }: Schema, root: Schema): Draft {
  const fields: Record<string, TaggedValue> = {};
  for (const [name, inner] of Object.entries(properties)) {
    const isNeeded = required.includes(name) || inner.default !== undefined;
    const value = isNeeded ? initialOf(inner, root) : undefined;
    if (value !== undefined) fields[name] = value;
  }
  return fields;
}

/** How many items a list has at least. */
export function fewestOf({ minItems, prefixItems }: Schema): number {
  return Math.max(minItems ?? 0, prefixItems?.length ?? 0);
}

/** How many items a list has at most. */
export function mostOf({ maxItems, items, prefixItems }: Schema): number {
  const isTuple = prefixItems !== undefined && typeof items !== "object";
  return isTuple ? prefixItems.length : (maxItems ?? Number.POSITIVE_INFINITY);
}

/** The schema of an item. */
export function itemSchemaOf({ items, prefixItems }: Schema, index: number): Schema {
  return prefixItems?.[index] ?? (typeof items === "object" ? items : {});
}

/** The schema of a record's values. */
export function valueSchemaOf({ additionalProperties }: Schema): Schema {
  return typeof additionalProperties === "object" ? additionalProperties : {};
}

/** The property that tells the alternatives of a union apart, and its value in this one. */
function discriminatorOf({
  properties = {},
  required = [],
}: Schema): [string, unknown] | undefined {
  const found = Object.entries(properties).find(
    ([name, { const: value }]) => value !== undefined && required.includes(name),
  );
  return found && [found[0], found[1].const];
}

/** The name of the property whose value says which alternative is meant, and which a form needs no field for. */
export function tagOf(schema: Schema): string | undefined {
  return discriminatorOf(schema)?.[0];
}

const words: Readonly<Record<string, string>> = {
  string: "Text",
  number: "Number",
  integer: "Number",
  boolean: "Yes or no",
  array: "List",
  null: "None",
};

/** What an alternative is called. */
export function alternativeName(schema: Schema): string {
  const { title, type, format, properties } = schema;
  if (title !== undefined && title !== "") return title;
  const tag = discriminatorOf(schema);
  if (tag !== undefined) return titleOf(String(tag[1]), {});
  const choices = choicesOf(schema);
  if (choices !== undefined && !isNull(schema)) return choices.map(choiceText).join(", ");
  const keys = Object.keys(properties ?? {});
  if (keys.length > 0) return keys.map((key) => titleOf(key, {})).join(", ");
  const word = typeof type === "string" ? (words[type] ?? "Key and value") : "Anything";
  return format === undefined ? word : titleOf(format, {});
}

/** Which alternative a value belongs to; -1 for none. */
export function alternativeAt(schemas: readonly Schema[], value: Draft): number {
  if (value === undefined) return -1;
  return schemas.findIndex((schema) => {
    const tag = discriminatorOf(schema);
    if (tag !== undefined) return Reflect.get(Object(value), tag[0]) === tag[1];
    const choices = choicesOf(schema);
    if (choices !== undefined) return choices.some((choice) => isSame(choice, value));
    return schema.type === undefined || schema.type === jsonType(value, schema);
  });
}

function jsonType(value: TaggedValue, { type }: Schema): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && type === "integer" ? "integer" : typeof value;
}

/** Whether two values are the same as JSON. */
export function isSame(one: TaggedValue, other: Draft): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** A value of a choice as it is shown. */
export function choiceText(choice: TaggedValue): string {
  return typeof choice === "string" ? choice : JSON.stringify(choice);
}

/** What is wrong with the value of a single field; `""` if nothing is. */
export function problemOf(schema: Schema, value: Draft, required: boolean): string {
  if (value === undefined || value === "") return required ? "This is required." : "";
  if (typeof value === "number") return problemOfNumber(schema, value);
  return typeof value === "string" ? problemOfText(schema, value) : "";
}

function problemOfNumber(schema: Schema, value: number): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, type } = schema;
  if (type === "integer" && !Number.isInteger(value)) return "Must be a whole number.";
  if (minimum !== undefined && value < minimum) return `Must be at least ${minimum}.`;
  if (maximum !== undefined && value > maximum) return `Must be at most ${maximum}.`;
  if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    return `Must be more than ${exclusiveMinimum}.`;
  if (exclusiveMaximum !== undefined && value >= exclusiveMaximum)
    return `Must be less than ${exclusiveMaximum}.`;
  const parts = multipleOf === undefined ? 0 : value / multipleOf;
  return Math.abs(parts - Math.round(parts)) > 1e-9 ? `Must be a multiple of ${multipleOf}.` : "";
}

const formats: Readonly<Record<string, string>> = {
  email: "Must be an email address.",
  uri: "Must be a URL.",
  uuid: "Must be a UUID.",
};

function problemOfText(
  { minLength = 0, maxLength, pattern, format }: Schema,
  text: string,
): string {
  const { length } = [...text];
  if (length < minLength) return `Must have at least ${minLength} characters.`;
  if (maxLength !== undefined && length > maxLength)
    return `Must have at most ${maxLength} characters.`;
  if (pattern === undefined || matches(pattern, text)) return "";
  return formats[format ?? ""] ?? `Must match ${pattern}`;
}

function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, "u").test(text);
  } catch {
    // The server knows what it means.
    return true;
  }
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
