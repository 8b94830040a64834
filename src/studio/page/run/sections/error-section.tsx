import type { JSX } from "preact";
import type { RunView } from "../../../api.js";
import { Command, Copy } from "../../parts/command.js";
import { Icon } from "../../parts/icon.js";
import { LongText } from "../../parts/long-text.js";
import { Section } from "../../parts/section.js";

/** What made a run end early, or why its checkpoint can't be read. */
export function ErrorSection({
  view,
  onSelect,
}: {
  readonly view: RunView;
  readonly onSelect: (node: string) => void;
}): JSX.Element | null {
  const { error, problem } = view;
  if (problem !== undefined) return <CorruptSection problem={problem} />;
  if (error === null) return null;
  const stack = error.stack ?? "";
  return (
    <Section
      title="Error"
      kind="error"
      note={
        <button type="button" class="row-button" onClick={() => onSelect(error.node)}>
          in {error.node}
        </button>
      }
      tools={
        <Copy
          text={stack === "" ? `${error.name}: ${error.message}` : stack}
          label="Copy the error"
        />
      }
    >
      <p class="error-message">
        <strong>{error.name}</strong> <LongText text={error.message} />
      </p>
      {stack !== "" && (
        <details>
          <summary>Stack</summary>
          <pre class="stack mono">{stack}</pre>
        </details>
      )}
    </Section>
  );
}

function CorruptSection({
  problem,
}: {
  readonly problem: NonNullable<RunView["problem"]>;
}): JSX.Element {
  const isCorrupt = problem.code.startsWith("CHECKPOINT_CORR");
  return (
    <Section title="Error" kind="error">
      <div class="corrupt-run">
        <Icon name="warning" />
        <p>
          <strong>
            {isCorrupt ? "This run's newest checkpoint is corrupt." : "This run can't be read."}
          </strong>{" "}
          <LongText text={problem.message} />
        </p>
        {problem.expected !== undefined && (
          <dl class="pairs">
            <dt>Expected</dt>
            <dd class="mono">{problem.expected}</dd>
            <dt>Found</dt>
            <dd class="mono">{problem.actual}</dd>
          </dl>
        )}
        {problem.help !== undefined && <p class="muted">{problem.help}</p>}
        {problem.command !== undefined && <Command command={problem.command} />}
      </div>
    </Section>
  );
}
