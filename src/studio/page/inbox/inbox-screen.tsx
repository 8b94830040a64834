import type { JSX } from "preact";
import type { Inbox, InboxPause } from "../../api.js";
import { amend, href, linkTo } from "../address.js";
import { useGet, useNow, useQuietReload } from "../client/hooks.js";
import { AnswerForm } from "../forms/answer-form.js";
import { Copy } from "../parts/command.js";
import { GraphSelect } from "../parts/graph-select.js";
import { Blank, Failed, Loading } from "../parts/states.js";
import { Deadline } from "../run/sections/waiting-section.js";
import { Time } from "../runs/columns.js";
import { RunLink } from "../runs/runs-table.js";
import { useEvents } from "../studio.js";

/** All open questions, oldest first; or the one that a link leads to. */
export function InboxScreen({
  runId,
  pause,
  query,
}: {
  readonly runId: string;
  readonly pause: string | undefined;
  readonly query: URLSearchParams;
}): JSX.Element {
  const { data, failure, reload } = useGet<Inbox>("inbox");
  const now = useNow();
  const graph = query.get("graph") ?? "";
  useEvents(reload);
  useQuietReload(reload);
  const all = data?.pauses ?? [];
  const graphs = [...new Set(all.map((one) => one.graph))];
  const shown =
    runId === ""
      ? all.filter((one) => graph === "" || one.graph === graph)
      : all.filter((one) => one.runId === runId && (pause === undefined || one.name === pause));
  return (
    <div class="inbox">
      <header class="screen-head">
        <h1>Inbox</h1>
        {data !== undefined && runId === "" && (
          <span class="muted">
            {all.length === 0 ? "" : `${all.length}${data.more ? "+" : ""} open, oldest first`}
          </span>
        )}
        {runId !== "" && <a href="#/inbox">All open questions</a>}
        {(graphs.length > 1 || graph !== "") && runId === "" && (
          <GraphSelect names={graphs} value={graph} onChange={(name) => amend({ graph: name })} />
        )}
      </header>
      {failure !== undefined && data === undefined && <Failed failure={failure} onRetry={reload} />}
      {data === undefined && failure === undefined && <Loading />}
      {data !== undefined && shown.length === 0 && (
        <Blank icon="inbox" title={runId === "" ? "Nothing waits for you" : "This is settled"}>
          <p class="muted">
            {runId === ""
              ? "Questions of paused runs appear here, with a form to answer each."
              : "Somebody has answered it, its time was up, or the run is gone."}
          </p>
          {runId !== "" && <a href={href(["runs", runId])}>Look at the run</a>}
        </Blank>
      )}
      <ul class="questions">
        {shown.map((one) => (
          <Question
            key={`${one.runId} ${one.node} ${one.name}`}
            pause={one}
            now={now}
            onDone={reload}
          />
        ))}
      </ul>
    </div>
  );
}

function Question({
  pause,
  now,
  onDone,
}: {
  readonly pause: InboxPause;
  readonly now: number;
  readonly onDone: () => void;
}): JSX.Element {
  const { runId, graph, name, node, since, deadline, metadata, command, answerable } = pause;
  return (
    <li class="card">
      <header class="card-head muted">
        <span class="strong cut">{graph}</span>
        <span class="cut">{name === "" ? node : name}</span>
        <span>
          asked <Time time={since} now={now} />
        </span>
        {deadline !== undefined && <Deadline deadline={deadline} now={now} />}
        {Object.entries(metadata).map(([key, value]) => (
          <span key={key} class="cut">
            {key} {String(value)}
          </span>
        ))}
        <span class="card-tools">
          <Copy
            text={linkTo(href(["inbox", runId, name]))}
            label="Copy a link to this question"
            icon="link"
          />
        </span>
      </header>
      <AnswerForm
        runId={runId}
        pause={pause}
        command={command}
        answerable={answerable}
        onDone={onDone}
      />
      <p class="card-run muted">
        Run <RunLink runId={runId} />
      </p>
    </li>
  );
}
