import type { JSX } from "preact";
import { useContext, useId, useState } from "preact/hooks";
import type { TaggedValue } from "../../api.js";
import { Icon } from "../parts/icon.js";
import { type FieldProps, Form, Group, labelOf, Notes, pathTo, useProblem } from "./field.js";
import {
  alternativeAt,
  alternativeName,
  alternativesOf,
  choicesOf,
  type Draft,
  fewestOf,
  initialOf,
  isNull,
  itemSchemaOf,
  kindOf,
  mostOf,
  resolved,
  tagOf,
  valueSchemaOf,
} from "./schema.js";
import {
  BooleanField,
  ChoiceField,
  ConstantField,
  JsonField,
  NumberField,
  SelectField,
  TextField,
} from "./single-fields.js";

/** The field of a JSON Schema, or its fields. */
export function Field(props: FieldProps): JSX.Element {
  const { root } = useContext(Form);
  const schema = resolved(props.schema, root);
  const field = { ...props, schema };
  const kind = kindOf(schema);
  const isLarge = kind === "object" || kind === "union" || kind === "list" || kind === "record";
  if (isLarge && !props.required) return <OptionalField {...field} />;
  switch (kind) {
    case "object":
      return <ObjectField {...field} />;
    case "union":
      return <UnionField {...field} />;
    case "nullable":
      return <NullableField {...field} />;
    case "record":
      return <RecordField {...field} />;
    case "list":
      return <ListField {...field} />;
    case "choice":
      return <ChoiceField {...field} />;
    case "constant":
      return <ConstantField {...field} />;
    case "boolean":
      return <BooleanField {...field} />;
    case "number":
      return <NumberField {...field} />;
    case "text":
      return <TextField {...field} />;
    case "json":
      return <AnyField {...field} />;
  }
}

/** What the schema leaves open is typed as JSON. */
function AnyField({ schema, ...props }: FieldProps): JSX.Element {
  const why = "The schema describes no form for this: type any JSON.";
  const description = schema.description === undefined ? why : `${schema.description} ${why}`;
  return <JsonField {...props} schema={{ ...schema, description }} />;
}

/** What may be left out is, until it is asked for. */
function OptionalField(props: FieldProps): JSX.Element {
  const { schema, name, value, onChange } = props;
  const { root } = useContext(Form);
  const [shown, setShown] = useState(value !== undefined);
  const label = labelOf(name, schema);
  if (!shown) {
    return (
      <div class="field">
        <span>
          {label} <span class="muted">optional</span>
        </span>
        <button
          type="button"
          class="start"
          onClick={() => {
            setShown(true);
            onChange(initialOf(schema, root));
          }}
        >
          <Icon name="plus" />
          Add {label.toLowerCase()}
        </button>
      </div>
    );
  }
  return (
    <div class="list-item">
      <Field {...props} required />
      <Remove
        what={label.toLowerCase()}
        onClick={() => {
          setShown(false);
          onChange(undefined);
        }}
      />
    </div>
  );
}

function Remove({
  what,
  onClick,
}: {
  readonly what: string;
  readonly onClick: () => void;
}): JSX.Element {
  return (
    <button type="button" class="plain square" aria-label={`Remove ${what}`} onClick={onClick}>
      <Icon name="cross" />
    </button>
  );
}

function Add({
  what,
  onClick,
}: {
  readonly what: string;
  readonly onClick: () => void;
}): JSX.Element {
  return (
    <button type="button" class="start" aria-label={`Add to ${what}`} onClick={onClick}>
      <Icon name="plus" />
      Add
    </button>
  );
}

type Fields = Readonly<Record<string, TaggedValue>>;

function fieldsOf(value: Draft): Fields {
  return (typeof value === "object" && value !== null ? value : {}) as Fields;
}

function ObjectField(props: FieldProps & { readonly hidden?: string }): JSX.Element {
  const { schema, name, path, required, value, onChange, hidden } = props;
  const fields = fieldsOf(value);
  const inner = Object.entries(schema.properties ?? {})
    .filter(([key]) => key !== hidden)
    .map(([key, one]) => (
      <Field
        key={key}
        schema={one}
        name={key}
        path={pathTo(path, key)}
        required={schema.required?.includes(key) ?? false}
        value={Object.hasOwn(fields, key) ? fields[key] : undefined}
        onChange={(next) => {
          const { [key]: _, ...others } = fields;
          onChange(next === undefined ? others : { ...others, [key]: next });
        }}
      />
    ));
  if (name === "") return <>{inner}</>;
  return (
    <Group schema={schema} name={name} required={required}>
      {inner}
    </Group>
  );
}

/** A choice of alternatives, and the form of the chosen one. */
function UnionField(props: FieldProps): JSX.Element {
  const { schema, name, path, value, onChange } = props;
  const { root } = useContext(Form);
  const alternatives = (alternativesOf(schema) ?? []).map((one) => resolved(one, root));
  const [at, setAt] = useState(() => alternativeAt(alternatives, value));
  const id = useId();
  const chosen = alternatives[at];
  // Once an alternative is chosen, its own fields say what is missing.
  const { shown, ref } = useProblem({ ...props, required: chosen === undefined, schema: {} });
  return (
    <fieldset class="field inner" aria-describedby={`${id}-notes`}>
      <legend>{labelOf(name, schema)}</legend>
      <div class="choices">
        {alternatives.map((one, index) => (
          <label key={index} class="choice">
            <input
              type="radio"
              name={id}
              ref={index === 0 ? ref : null}
              checked={index === at}
              onChange={() => {
                setAt(index);
                onChange(initialOf(one, root));
              }}
            />
            <span class="clamp">{alternativeName(one)}</span>
          </label>
        ))}
      </div>
      <Notes id={`${id}-notes`} schema={schema} problem={shown} />
      {chosen !== undefined && (
        <Alternative key={at} {...props} schema={chosen} name={name} path={path} />
      )}
    </fieldset>
  );
}

function Alternative(props: FieldProps): JSX.Element | null {
  const { schema } = props;
  const kind = kindOf(schema);
  if (kind === "constant") return null;
  // The choice above is its heading.
  if (kind === "object") return <ObjectField {...props} name="" hidden={tagOf(schema) ?? ""} />;
  const title = schema.title ?? alternativeName(schema);
  return <Field {...props} schema={{ ...schema, title }} required />;
}

/** A value that may be null instead. */
function NullableField(props: FieldProps): JSX.Element {
  const { schema, name, value, onChange } = props;
  const { root } = useContext(Form);
  const inner = (alternativesOf(schema) ?? []).find((one) => !isNull(one)) ?? {};
  const { title, description } = schema;
  const one = {
    ...inner,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
  };
  const isNone = value === null;
  return (
    <div class="field">
      {isNone ? <span>{labelOf(name, one)}</span> : <Field {...props} schema={one} />}
      <label class="none">
        <input
          type="checkbox"
          checked={isNone}
          onChange={() => onChange(isNone ? initialOf(inner, root) : null)}
        />
        <span>
          none <span class="unseen">for {labelOf(name, one)}</span>
        </span>
      </label>
    </div>
  );
}

function ListField({ schema, name, path, required, value, onChange }: FieldProps): JSX.Element {
  const { root } = useContext(Form);
  const items: readonly TaggedValue[] = Array.isArray(value) ? value : [];
  const label = labelOf(name, schema);
  const replace = (index: number, next: Draft): void =>
    onChange(items.map((one, at) => (at === index ? (next ?? "") : one)));
  return (
    <Group schema={schema} name={name} required={required}>
      {items.map((one, index) => (
        <div key={index} class="list-item">
          <Field
            schema={itemSchemaOf(schema, index)}
            name={String(index + 1)}
            path={pathTo(path, index)}
            required
            value={one === "" ? undefined : one}
            onChange={(next) => replace(index, next)}
          />
          {items.length > fewestOf(schema) && (
            <Remove
              what={`${label} ${index + 1}`}
              onClick={() => onChange(items.filter((_, at) => at !== index))}
            />
          )}
        </div>
      ))}
      {items.length < mostOf(schema) && (
        <Add
          what={label}
          onClick={() =>
            onChange([...items, initialOf(itemSchemaOf(schema, items.length), root) ?? ""])
          }
        />
      )}
    </Group>
  );
}

/** Rows of a key and its value. */
function RecordField(props: FieldProps): JSX.Element {
  const { schema, name, path, required, value, onChange } = props;
  const { root } = useContext(Form);
  const [rows, setRows] = useState<readonly (readonly [key: string, value: Draft])[]>(() =>
    Object.entries(fieldsOf(value)),
  );
  const label = labelOf(name, schema);
  const keys = choicesOf(schema.propertyNames ?? {})?.map(String);
  const change = (next: typeof rows): void => {
    setRows(next);
    onChange(
      Object.fromEntries(next.flatMap(([key, one]) => (key === "" ? [] : [[key, one ?? ""]]))),
    );
  };
  const replace = (index: number, row: (typeof rows)[number]): void =>
    change(rows.map((one, at) => (at === index ? row : one)));
  return (
    <Group schema={schema} name={name} required={required}>
      {rows.map(([key, one], index) => (
        <div key={index} class="record-row">
          <KeyField
            keys={keys}
            value={key}
            isTwice={rows.some(([other], at) => at !== index && other === key && key !== "")}
            onChange={(next) => replace(index, [next, one])}
          />
          <Field
            schema={valueSchemaOf(schema)}
            name="value"
            path={pathTo(path, key)}
            required
            value={one === "" ? undefined : one}
            onChange={(next) => replace(index, [key, next])}
          />
          {!schema.required?.includes(key) && (
            <Remove
              what={key === "" ? `row ${index + 1}` : key}
              onClick={() => change(rows.filter((_, at) => at !== index))}
            />
          )}
        </div>
      ))}
      {rows.length < (keys?.length ?? Number.POSITIVE_INFINITY) && (
        <Add
          what={label}
          onClick={() => change([...rows, ["", initialOf(valueSchemaOf(schema), root)]])}
        />
      )}
    </Group>
  );
}

function KeyField({
  keys,
  value,
  isTwice,
  onChange,
}: {
  readonly keys: readonly string[] | undefined;
  readonly value: string;
  readonly isTwice: boolean;
  readonly onChange: (key: string) => void;
}): JSX.Element {
  const field = {
    name: "key",
    path: "",
    required: true,
    value: value === "" ? undefined : value,
    malformed: isTwice ? "This key is there already." : "",
    onChange: (next: Draft): void => onChange(typeof next === "string" ? next : ""),
  };
  return keys === undefined ? (
    <TextField schema={{ type: "string" }} {...field} />
  ) : (
    <SelectField schema={{ enum: keys }} {...field} />
  );
}
