import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { TaggedValue } from "../../api.js";
import { Icon } from "../parts/icon.js";
import {
  choicesOf,
  type Draft,
  initialOf,
  kindOf,
  parseJson,
  type Schema,
  titleOf,
  typeOf,
} from "./schema.js";

interface FieldProps {
  readonly schema: Schema;
  /** What it is called; `""` for the value as a whole. */
  readonly name: string;
  readonly required: boolean;
  readonly value: Draft;
  readonly onChange: (value: Draft) => void;
}

/** The field of a JSON Schema, or its fields. */
export function Field(props: FieldProps): JSX.Element {
  switch (kindOf(props.schema)) {
    case "object":
      return <ObjectField {...props} />;
    case "choice":
      return <ChoiceField {...props} />;
    case "boolean":
      return <Radios {...props} choices={yesNo} />;
    case "number":
      return <NumberField {...props} />;
    case "list":
      return <ListField {...props} />;
    case "json":
      return <JsonField {...props} />;
    default:
      return <TextField {...props} />;
  }
}

function label(name: string, schema: Schema): string {
  return name === "" ? (schema.title ?? "Answer") : titleOf(name, schema);
}

/** A label above its field, with what the schema says of it. */
function Labelled({
  name,
  schema,
  required,
  children,
}: Pick<FieldProps, "name" | "schema" | "required"> & {
  readonly children: (id: string, hint: string | undefined) => ComponentChildren;
}): JSX.Element {
  const id = useId();
  const hint = schema.description === undefined ? undefined : `${id}-hint`;
  return (
    <div class="field">
      <label for={id}>
        {label(name, schema)}
        {!required && <span class="muted"> optional</span>}
      </label>
      {children(id, hint)}
      {hint !== undefined && (
        <p id={hint} class="muted hint">
          {schema.description}
        </p>
      )}
    </div>
  );
}

function ObjectField({ schema, name, value, onChange }: FieldProps): JSX.Element {
  const fields = (typeof value === "object" && value !== null ? value : {}) as Readonly<
    Record<string, TaggedValue>
  >;
  const inner = Object.entries(schema.properties ?? {}).map(([key, one]) => (
    <Field
      key={key}
      schema={one}
      name={key}
      required={schema.required?.includes(key) ?? false}
      value={fields[key]}
      onChange={(next) => {
        const { [key]: _, ...others } = fields;
        onChange(next === undefined ? others : { ...others, [key]: next });
      }}
    />
  ));
  if (name === "") return <>{inner}</>;
  return (
    <fieldset class="field inner">
      <legend>{label(name, schema)}</legend>
      {inner}
    </fieldset>
  );
}

const FEW = 5;

function ChoiceField(props: FieldProps): JSX.Element {
  const { schema, name, required, value, onChange } = props;
  const text = (choice: TaggedValue): string =>
    typeof choice === "string" ? choice : JSON.stringify(choice);
  const choices = (choicesOf(schema) ?? []).map((choice) => [choice, text(choice)] as const);
  if (choices.length <= FEW) return <Radios {...props} choices={choices} />;
  const at = choices.findIndex(([choice]) => isSame(choice, value));
  return (
    <Labelled name={name} schema={schema} required={required}>
      {(field, hint) => (
        <select
          id={field}
          aria-describedby={hint}
          required={required}
          value={at < 0 ? "" : String(at)}
          onChange={(event) => {
            const index = event.currentTarget.value;
            onChange(index === "" ? undefined : choices[Number(index)]?.[0]);
          }}
        >
          <option value="">choose</option>
          {choices.map(([, word], index) => (
            <option key={word} value={String(index)}>
              {word}
            </option>
          ))}
        </select>
      )}
    </Labelled>
  );
}

const yesNo = [
  [true, "Yes"],
  [false, "No"],
] as const;

function Radios({
  schema,
  name,
  required,
  value,
  onChange,
  choices,
}: FieldProps & {
  readonly choices: readonly (readonly [value: TaggedValue, word: string])[];
}): JSX.Element {
  const id = useId();
  return (
    <fieldset class="field">
      <legend>
        {label(name, schema)}
        {!required && <span class="muted"> optional</span>}
      </legend>
      <div class="choices">
        {choices.map(([choice, word]) => (
          <label key={word} class="choice">
            <input
              type="radio"
              name={id}
              required={required}
              checked={isSame(choice, value)}
              onChange={() => onChange(choice)}
            />
            <span>{word}</span>
          </label>
        ))}
      </div>
      {schema.description !== undefined && <p class="muted hint">{schema.description}</p>}
    </fieldset>
  );
}

function isSame(one: TaggedValue, other: Draft): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function NumberField({ schema, name, required, value, onChange }: FieldProps): JSX.Element {
  return (
    <Labelled name={name} schema={schema} required={required}>
      {(id, hint) => (
        <input
          id={id}
          type="number"
          inputMode="decimal"
          aria-describedby={hint}
          required={required}
          min={schema.minimum}
          max={schema.maximum}
          step={typeOf(schema) === "integer" ? 1 : "any"}
          value={typeof value === "number" ? value : ""}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.valueAsNumber)
          }
        />
      )}
    </Labelled>
  );
}

const keyboards: Readonly<Record<string, "email" | "url">> = { email: "email", uri: "url" };
const samples: Readonly<Record<string, string>> = { "date-time": "2026-01-31T12:00:00Z" };

function TextField({ schema, name, required, value, onChange }: FieldProps): JSX.Element {
  return (
    <Labelled name={name} schema={schema} required={required}>
      {(id, hint) => {
        const common = {
          id,
          required,
          "aria-describedby": hint,
          minLength: schema.minLength,
          maxLength: schema.maxLength,
          value: typeof value === "string" ? value : "",
          onInput: ({ currentTarget }: { currentTarget: { value: string } }): void =>
            onChange(currentTarget.value === "" && !required ? undefined : currentTarget.value),
        };
        if (kindOf(schema) === "long") return <textarea rows={4} {...common} />;
        if (schema.format === "date") return <input type="date" {...common} />;
        const { format = "" } = schema;
        return (
          <input
            type="text"
            inputMode={keyboards[format]}
            placeholder={samples[format]}
            {...common}
          />
        );
      }}
    </Labelled>
  );
}

function ListField({ schema, name, value, onChange }: FieldProps): JSX.Element {
  const items: readonly TaggedValue[] = Array.isArray(value) ? value : [];
  const item = schema.items ?? {};
  const replace = (index: number, next: Draft): void =>
    onChange(items.map((one, at) => (at === index ? (next ?? "") : one)));
  return (
    <fieldset class="field inner">
      <legend>{label(name, schema)}</legend>
      {items.map((one, index) => (
        <div key={index} class="list-item">
          <Field
            schema={item}
            name={String(index + 1)}
            required
            value={one}
            onChange={(next) => replace(index, next)}
          />
          <button
            type="button"
            class="plain square"
            aria-label={`Remove ${index + 1}`}
            onClick={() => onChange(items.filter((_, at) => at !== index))}
          >
            <Icon name="cross" />
          </button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...items, initialOf(item) ?? ""])}>
        <Icon name="plus" />
        Add
      </button>
    </fieldset>
  );
}

/** Any JSON, for what no other field fits. */
export function JsonField({ schema, name, required, value, onChange }: FieldProps): JSX.Element {
  const [text, setText] = useState(() =>
    value === undefined ? "" : JSON.stringify(value, undefined, 2),
  );
  const parsed = text.trim() === "" ? undefined : parseJson(text);
  const problem = parsed !== undefined && "problem" in parsed ? parsed.problem : undefined;
  return (
    <Labelled name={name} schema={schema} required={required}>
      {(id, hint) => (
        <>
          <textarea
            id={id}
            class="mono"
            rows={6}
            spellcheck={false}
            required={required}
            aria-describedby={hint}
            aria-invalid={problem !== undefined}
            placeholder="any JSON"
            value={text}
            onInput={({ currentTarget }) => {
              const next = currentTarget.value;
              setText(next);
              const result = next.trim() === "" ? undefined : parseJson(next);
              currentTarget.setCustomValidity(
                result !== undefined && "problem" in result ? `not JSON: ${result.problem}` : "",
              );
              onChange(result !== undefined && "value" in result ? result.value : undefined);
            }}
          />
          {problem !== undefined && (
            <p class="refused" role="alert">
              {problem}
            </p>
          )}
        </>
      )}
    </Labelled>
  );
}
