import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext, useId, useLayoutEffect, useRef } from "preact/hooks";
import { type Draft, problemOf, type Schema, titleOf } from "./schema.js";

/** What every field takes. */
export interface FieldProps {
  readonly schema: Schema;
  /** What it is called; `""` for the value as a whole. */
  readonly name: string;
  /** Where its value is, keys joined by dots; `""` for the value as a whole. */
  readonly path: string;
  readonly required: boolean;
  readonly value: Draft;
  /** Why what was typed is no value at all; `""` if it is one. */
  readonly malformed?: string;
  readonly onChange: (value: Draft) => void;
}

/** What the fields of a form share. */
export interface FormContext {
  /** The schema of the whole, which others in it refer to. */
  readonly root: Schema;
  /** Whether it was sent with something wrong, so that all of it is shown. */
  readonly checked: boolean;
  /** What the server found wrong, by path. */
  readonly issues: ReadonlyMap<string, string>;
}

export const Form = createContext<FormContext>({ root: {}, checked: false, issues: new Map() });

/** The path of a part of a value. */
export function pathTo(path: string, key: string | number): string {
  return path === "" ? String(key) : `${path}.${key}`;
}

/** What a field is called. */
export function labelOf(name: string, schema: Schema): string {
  return name === "" ? (schema.title ?? "Answer") : titleOf(name, schema);
}

/** What an element that is filled in says of itself. */
export interface Described {
  readonly id: string;
  readonly ref: (element: Checked | null) => void;
  readonly "aria-describedby": string | undefined;
  readonly "aria-required": boolean;
  readonly "aria-invalid": boolean;
}

type Checked = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** What is wrong with a field, as the browser and the person get to know it. */
export function useProblem({
  schema,
  value,
  required,
  path,
  malformed = "",
}: Omit<FieldProps, "name" | "onChange">): {
  /** What is shown; `""` for nothing. */
  readonly shown: string;
  readonly ref: (element: Checked | null) => void;
} {
  const { checked, issues } = useContext(Form);
  const element = useRef<Checked | null>(null);
  const own = malformed || problemOf(schema, value, required);
  useLayoutEffect(() => element.current?.setCustomValidity(own), [own]);
  const shown = malformed || (checked && own) || (issues.get(path) ?? "");
  const ref = (given: Checked | null): void => {
    element.current = given;
  };
  return { shown, ref };
}

/** The text under a field: what is wrong with it, and what the schema says of it. */
export function Notes({
  id,
  schema,
  problem,
}: {
  readonly id: string;
  readonly schema: Schema;
  readonly problem: string;
}): JSX.Element {
  return (
    <div id={id} class="notes">
      {problem !== "" && <p class="refused">{problem}</p>}
      {schema.description !== undefined && <p class="muted hint">{schema.description}</p>}
    </div>
  );
}

/** A label above its field, with what is to be known of it below. */
export function Labelled({
  children,
  ...field
}: Omit<FieldProps, "onChange"> & {
  readonly children: (described: Described) => ComponentChildren;
}): JSX.Element {
  const { name, schema, required } = field;
  const id = useId();
  const { shown, ref } = useProblem(field);
  return (
    <div class="field">
      <label for={id}>
        {labelOf(name, schema)}
        {!required && <span class="muted"> optional</span>}
      </label>
      {children({
        id,
        ref,
        "aria-describedby": `${id}-notes`,
        "aria-required": required,
        "aria-invalid": shown !== "",
      })}
      <Notes id={`${id}-notes`} schema={schema} problem={shown} />
    </div>
  );
}

/** Fields under one heading. */
export function Group({
  schema,
  name,
  required,
  children,
}: Pick<FieldProps, "schema" | "name" | "required"> & {
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <fieldset class="field inner">
      <legend>
        {labelOf(name, schema)}
        {!required && <span class="muted"> optional</span>}
      </legend>
      {schema.description !== undefined && <p class="muted hint">{schema.description}</p>}
      {children}
    </fieldset>
  );
}
