import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { TaggedValue } from "../../api.js";
import { type FieldProps, Labelled, labelOf, Notes, useProblem } from "./field.js";
import { choicesOf, choiceText, isSame, parseJson } from "./schema.js";

/** At most so many choices are shown side by side. */
const FEW = 5;

type Choices = readonly (readonly [value: TaggedValue, word: string])[];

function choicesIn({ schema }: FieldProps): Choices {
  return (choicesOf(schema) ?? []).map((choice) => [choice, choiceText(choice)]);
}

/** One of several values. */
export function ChoiceField(props: FieldProps): JSX.Element {
  const choices = choicesIn(props);
  if (choices.length > FEW) return <SelectField {...props} />;
  return <Radios {...props} choices={choices} />;
}

/** One of several values, in one line. */
export function SelectField(props: FieldProps): JSX.Element {
  const { value, onChange } = props;
  const choices = choicesIn(props);
  const at = choices.findIndex(([choice]) => isSame(choice, value));
  return (
    <Labelled {...props}>
      {(described) => (
        <select
          {...described}
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

/** Yes or no. */
export function BooleanField(props: FieldProps): JSX.Element {
  return <Radios {...props} choices={yesNo} />;
}

function Radios({ choices, ...field }: FieldProps & { readonly choices: Choices }): JSX.Element {
  const { schema, name, required, value, onChange } = field;
  const id = useId();
  const { shown, ref } = useProblem(field);
  return (
    <fieldset class="field" aria-describedby={`${id}-notes`}>
      <legend>
        {labelOf(name, schema)}
        {!required && <span class="muted"> optional</span>}
      </legend>
      <div class="choices">
        {choices.map(([choice, word], index) => (
          <label key={word} class="choice">
            <input
              type="radio"
              name={id}
              ref={index === 0 ? ref : null}
              checked={isSame(choice, value)}
              onChange={() => onChange(choice)}
            />
            <span>{word}</span>
          </label>
        ))}
        {!required && value !== undefined && (
          <button type="button" class="plain" onClick={() => onChange(undefined)}>
            Clear
          </button>
        )}
      </div>
      <Notes id={`${id}-notes`} schema={schema} problem={shown} />
    </fieldset>
  );
}

/** A value that is given. */
export function ConstantField({ schema, name, value }: FieldProps): JSX.Element {
  return (
    <p class="field">
      <span>{labelOf(name, schema)}</span>
      <span class="muted">{value === undefined ? "–" : choiceText(value)}</span>
    </p>
  );
}

/** A number. */
export function NumberField(props: FieldProps): JSX.Element {
  const { schema, value, onChange } = props;
  return (
    <Labelled {...props}>
      {(described) => (
        <input
          {...described}
          type="number"
          inputMode={schema.type === "integer" ? "numeric" : "decimal"}
          step="any"
          value={typeof value === "number" ? value : ""}
          onInput={({ currentTarget }) =>
            onChange(currentTarget.value === "" ? undefined : currentTarget.valueAsNumber)
          }
        />
      )}
    </Labelled>
  );
}

/** Longer texts than this get several lines. */
const LINE = 120;
const keyboards: Readonly<Record<string, "email" | "url">> = { email: "email", uri: "url" };

/** A text, a date or a time. */
export function TextField(props: FieldProps): JSX.Element {
  const { schema, required, value, onChange } = props;
  const { format = "", maxLength = 0 } = schema;
  const text = typeof value === "string" ? value : "";
  if (format === "date-time") return <MomentField {...props} />;
  return (
    <Labelled {...props}>
      {(described) => {
        const common = {
          ...described,
          value: text,
          onInput: ({ currentTarget }: { currentTarget: { value: string } }): void =>
            onChange(currentTarget.value === "" && !required ? undefined : currentTarget.value),
        };
        if (maxLength > LINE) return <textarea rows={4} {...common} />;
        if (format === "date") return <input type="date" {...common} />;
        if (format === "time") return <input type="time" {...common} />;
        return <input type="text" inputMode={keyboards[format]} {...common} />;
      }}
    </Labelled>
  );
}

/** A moment, typed in the person's own time and sent in UTC. */
function MomentField(props: FieldProps): JSX.Element {
  const { schema, value, onChange } = props;
  const description = schema.description ?? "In your local time.";
  return (
    <Labelled {...props} schema={{ ...schema, description }}>
      {(described) => (
        <input
          {...described}
          type="datetime-local"
          step="any"
          value={typeof value === "string" ? localOf(value) : ""}
          onChange={({ currentTarget }) => {
            const moment = new Date(currentTarget.value);
            onChange(Number.isNaN(moment.getTime()) ? undefined : moment.toISOString());
          }}
        />
      )}
    </Labelled>
  );
}

function localOf(iso: string): string {
  const moment = new Date(iso);
  const ms = moment.getTime() - moment.getTimezoneOffset() * 60_000;
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString().slice(0, 19);
}

/** Any JSON, for what no other field fits. */
export function JsonField(props: FieldProps): JSX.Element {
  const { value, onChange } = props;
  const [text, setText] = useState(() =>
    value === undefined ? "" : JSON.stringify(value, undefined, 2),
  );
  const parsed = text.trim() === "" ? undefined : parseJson(text);
  const malformed = parsed !== undefined && "problem" in parsed ? parsed.problem : "";
  return (
    <Labelled {...props} malformed={malformed}>
      {(described) => (
        <textarea
          {...described}
          class="mono"
          rows={6}
          spellcheck={false}
          placeholder="any JSON"
          value={text}
          onInput={({ currentTarget }) => {
            const next = currentTarget.value;
            setText(next);
            const result = next.trim() === "" ? undefined : parseJson(next);
            onChange(result !== undefined && "value" in result ? result.value : undefined);
          }}
        />
      )}
    </Labelled>
  );
}
