import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { shellWord } from "../../../report/shell.js";
import type { ActionResult, RunPause } from "../../api.js";
import { useSubmit } from "../client/hooks.js";
import { post, runPath } from "../client/http.js";
import { Command } from "../parts/command.js";
import { LongText } from "../parts/long-text.js";
import { Problem } from "../parts/states.js";
import { useStudio } from "../studio.js";
import { shownOf } from "../values/tagged.js";
import { ValueTree } from "../values/value-tree.js";
import { Form } from "./field.js";
import { type Draft, initialOf, type Schema } from "./schema.js";
import { Field } from "./schema-form.js";
import { JsonField } from "./single-fields.js";

/** What a pause asks, and the form that answers it. */
export function AnswerForm({
  runId,
  pause,
  command,
  answerable,
  onDone,
}: {
  readonly runId: string;
  readonly pause: RunPause;
  readonly command: string | undefined;
  readonly answerable: boolean;
  readonly onDone: () => void;
}): JSX.Element {
  const { announce } = useStudio();
  const schema = pause.schema as Schema | undefined;
  const [value, setValue] = useState<Draft>(() => (schema ? initialOf(schema, schema) : undefined));
  const [asJson, setAsJson] = useState(schema === undefined);
  const [checked, setChecked] = useState(false);
  const takesInput = pause.breakpoint === undefined;
  const { busy, failure, submit } = useSubmit(async () => {
    const answer = { name: pause.name, input: value ?? null };
    await (takesInput
      ? post<ActionResult>(runPath(runId, "answer"), answer)
      : post<ActionResult>(runPath(runId, "resume"), {}));
    announce(takesInput ? "The answer was sent." : "The run continues.");
    onDone();
  });
  const issues = new Map(failure?.issues.map(({ path, message }) => [path, message]));
  return (
    <form
      class="form answer"
      noValidate
      onSubmit={(event) => {
        setChecked(!event.currentTarget.checkValidity());
        submit(event);
      }}
    >
      <Question pause={pause} />
      <div class="fields">
        {pause.refused !== undefined && (
          <p class="refused">The last answer was refused: {pause.refused}</p>
        )}
        {answerable &&
          takesInput &&
          (asJson || schema === undefined ? (
            <JsonField
              schema={{ title: "Answer" }}
              name="answer"
              path=""
              required
              value={value}
              onChange={setValue}
            />
          ) : (
            <Form value={{ root: schema, checked, issues }}>
              <Field schema={schema} name="" path="" required value={value} onChange={setValue} />
            </Form>
          ))}
        {failure !== undefined && <Problem failure={failure} />}
        <div class="form-end">
          {answerable ? (
            <>
              {schema !== undefined && takesInput && (
                <button type="button" class="plain" onClick={() => setAsJson(!asJson)}>
                  {asJson ? "As a form" : "As JSON"}
                </button>
              )}
              <button type="submit" class="primary" disabled={busy}>
                {busy ? "Sending…" : takesInput ? "Send the answer" : "Continue the run"}
              </button>
            </>
          ) : (
            <p class="muted">It can't be answered here.</p>
          )}
        </div>
        {command !== undefined && (
          <details class="same">
            <summary class="muted">The same from a terminal</summary>
            <Command command={withInput(command, value)} />
          </details>
        )}
      </div>
    </form>
  );
}

/** The command with what was typed so far. */
function withInput(command: string, value: Draft): string {
  if (value === undefined) return command;
  return command.replace("--input JSON", () => `--input ${shellWord(JSON.stringify(value))}`);
}

function Question({ pause }: { readonly pause: RunPause }): JSX.Element {
  const { ask, reason } = pause;
  const asked = ask === undefined ? undefined : shownOf(ask);
  const isText = asked?.kind === "string";
  return (
    <div class="question">
      <p class="reason">
        <LongText text={isText ? asked.text : reason || "This run waits."} />
      </p>
      {isText && reason !== "" && reason !== asked.text && <p class="muted">{reason}</p>}
      {asked !== undefined && !isText && (
        <ValueTree
          label="What is asked"
          path={[]}
          open={2}
          entries={
            asked.entries.length > 0 ? asked.entries : [{ label: "ask", keys: [], value: ask }]
          }
        />
      )}
    </div>
  );
}
