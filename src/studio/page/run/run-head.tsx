import type { JSX } from "preact";
import type { RunHistory, RunView } from "../../api.js";
import { href } from "../address.js";
import { count, duration, money } from "../format.js";
import { Copy } from "../parts/command.js";
import { Fact } from "../parts/fact.js";
import { Icon } from "../parts/icon.js";
import { Status } from "../parts/status.js";
import { elapsedOf, Time } from "../runs/columns.js";
import { markOf, RunLink } from "../runs/runs-table.js";
import { RunActions } from "./actions/run-actions.js";
import type { Selection } from "./selection.js";

/** What a run is, how it is, and what can be done with it. */
export function RunHead({
  view,
  history,
  selection,
  now,
  onChange,
}: {
  readonly view: RunView;
  readonly history: RunHistory | undefined;
  readonly selection: Selection;
  readonly now: number;
  readonly onChange: () => void;
}): JSX.Element {
  const { run, parent, ledger } = view;
  const sinceStart = now - Date.parse(run.startedAt);
  const tokens = ledger.usage.inputTokens + ledger.usage.outputTokens;
  return (
    <header class="run-head">
      <div class="run-title">
        <p class="crumbs clamp muted">
          <a href="#/runs">Runs</a> <span aria-hidden="true">/</span>{" "}
          <a href={href(["runs"], { graph: run.graph })}>{run.graph || "no graph"}</a>
          {parent !== null && (
            <>
              {" "}
              · forked from <RunLink runId={parent.runId} />
            </>
          )}
        </p>
        <h1 class="mono">
          <span class="cut">{run.runId}</span>
          <Copy text={run.runId} label="Copy the run's id" />
        </h1>
        <p class="run-facts">
          <Status mark={markOf(run)} />
          <span class="cut">{sentenceOf(view)}</span>
        </p>
      </div>
      <RunActions view={view} history={history} selection={selection} onDone={onChange} />
      <dl class="facts">
        <Fact name="Steps">
          {run.maxSteps === null ? count(run.step) : `${run.step} of ${run.maxSteps}`}
        </Fact>
        <Fact name="Started">
          <Time time={run.startedAt} now={now} />
        </Fact>
        <Fact name="Saved">
          <Time time={run.savedAt} now={now} />
        </Fact>
        <Fact name="Elapsed">{duration(run.live === true ? sinceStart : elapsedOf(run))}</Fact>
        <Fact name="Cost">{money(ledger.usage.costUsd)}</Fact>
        <Fact name="Tokens">{tokens === 0 ? "–" : count(tokens)}</Fact>
      </dl>
      {selection.chosen && (
        <a class="follow" href={`#/runs/${encodeURIComponent(run.runId)}`}>
          <Icon name="refresh" />
          Back to the newest checkpoint
        </a>
      )}
    </header>
  );
}

/** Where a run is, in a few words. */
function sentenceOf({ run, next, error, problem, pauses }: RunView): string {
  if (problem !== undefined) return "its newest checkpoint can't be read";
  switch (run.status) {
    case "failed":
      return error === null ? "" : `in ${error.node}: ${error.message}`;
    case "paused":
      return pauses[0] === undefined
        ? ""
        : `in ${pauses[0].node}${pauses[0].reason === "" ? "" : `: ${pauses[0].reason}`}`;
    case "completed":
      return `at ${run.node}`;
    default:
      if (run.live === false)
        return `nobody works on it; it would continue with ${next.node ?? "its next node"}`;
      return next.node === null ? "" : `at ${next.node}`;
  }
}
