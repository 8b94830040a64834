import type { JSX } from "preact";
import type { RunView } from "../../../api.js";
import { href, linkTo } from "../../address.js";
import { age, moment } from "../../format.js";
import { AnswerForm } from "../../forms/answer-form.js";
import { Copy } from "../../parts/command.js";
import { Section } from "../../parts/section.js";
import { Time } from "../../runs/columns.js";

/** What a run waits for, with the forms that answer it. */
export function WaitingSection({
  view,
  now,
  onDone,
}: {
  readonly view: RunView;
  readonly now: number;
  readonly onDone: () => void;
}): JSX.Element | null {
  const { run, pauses, actions } = view;
  if (run.status !== "paused" || pauses.length === 0) return null;
  const answer = actions.find(({ action }) => action === "answer");
  const resume = actions.find(({ action }) => action === "resume");
  return (
    <Section title="Waiting" kind="waiting">
      {pauses.map((pause) => {
        const { name, node, since, deadline, until, breakpoint } = pause;
        const able = breakpoint === undefined ? answer : resume;
        return (
          <article key={`${name} ${node}`} class="pause">
            <p class="pause-facts muted">
              <span class="cut">{name === "" ? node : `${node}, ${name}`}</span>
              <span>
                since <Time time={since} now={now} />
              </span>
              {deadline !== undefined && <Deadline deadline={deadline} now={now} />}
              {until !== undefined && (
                <span title={moment(until)}>continues by itself {age(until, now)}</span>
              )}
              <Copy
                text={linkTo(href(["inbox", run.runId, name]))}
                label="Copy a link to this question"
                icon="link"
              />
            </p>
            {until === undefined && (
              <AnswerForm
                runId={run.runId}
                pause={pause}
                command={able?.command}
                answerable={able !== undefined}
                onDone={onDone}
              />
            )}
          </article>
        );
      })}
    </Section>
  );
}

/** When the time of a pause is up. */
export function Deadline({
  deadline,
  now,
}: {
  readonly deadline: string;
  readonly now: number;
}): JSX.Element {
  const left = Date.parse(deadline) - now;
  const soon = left < 3_600_000;
  return (
    <span class={`deadline ${soon ? "soon" : ""}`} title={moment(deadline)}>
      {left <= 0 ? "its time is up" : `answer due ${age(deadline, now)}`}
    </span>
  );
}
