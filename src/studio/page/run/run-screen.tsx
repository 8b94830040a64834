import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import type { RunView } from "../../api.js";
import { href } from "../address.js";
import { useGet, useNow, useQuietReload } from "../client/hooks.js";
import { runPath } from "../client/http.js";
import { Blank, Failed, Loading } from "../parts/states.js";
import { useEvents, useStudio } from "../studio.js";
import { GraphPanel } from "./graph/graph-panel.js";
import { RunHead } from "./run-head.js";
import { DetailsSection } from "./sections/details-section.js";
import { ErrorSection } from "./sections/error-section.js";
import { EventsSection } from "./sections/events-section.js";
import { HistorySection } from "./sections/history-section.js";
import { LedgerSection } from "./sections/ledger-section.js";
import { StateSection } from "./sections/state-section.js";
import { WaitingSection } from "./sections/waiting-section.js";
import { selectionOf, selectNode, selectStep } from "./selection.js";
import { TimelinePanel } from "./timeline/timeline-panel.js";
import { useHistory } from "./use-history.js";
import { useLog } from "./use-log.js";

/** The screen of a run. */
export function RunScreen({
  runId,
  query,
}: {
  readonly runId: string;
  readonly query: URLSearchParams;
}): JSX.Element {
  const run = useGet<RunView>(runPath(runId));
  const history = useHistory(runId, query);
  const [deleted, setDeleted] = useState(false);
  const reload = useCallback(() => {
    run.reload();
    history.reload();
  }, [run.reload, history.reload]);
  useEvents((event) => {
    if (event.event === "reset") reload();
    if (event.event === "run" && event.data.runId === runId) {
      setDeleted(false);
      reload();
    }
    if (event.event === "delete" && event.data.runId === runId) setDeleted(true);
  });
  useQuietReload(run.reload);
  const isMissing = run.failure?.kind === "missing";
  if (deleted || (isMissing && run.data !== undefined)) {
    return (
      <Blank icon="trash" title="This run was deleted">
        <a href="#/runs">All runs</a>
      </Blank>
    );
  }
  if (isMissing) {
    return (
      <Blank icon="search" title="There is no such run">
        <p class="muted">It may have been deleted, or be in another store.</p>
        <a href={href(["runs"], { q: runId })}>Search for it</a>
      </Blank>
    );
  }
  if (run.data === undefined && run.failure !== undefined) {
    return <Failed failure={run.failure} onRetry={reload} />;
  }
  if (run.data === undefined) return <Loading lines={12} />;
  return (
    <LoadedRun runId={runId} query={query} view={run.data} history={history} onChange={reload} />
  );
}

function LoadedRun({
  runId,
  query,
  view,
  history,
  onChange,
}: {
  readonly runId: string;
  readonly query: URLSearchParams;
  readonly view: RunView;
  readonly history: ReturnType<typeof useHistory>;
  readonly onChange: () => void;
}): JSX.Element {
  const now = useNow();
  const { session } = useStudio();
  const [large, setLarge] = useState(false);
  const log = useLog(runId, view.updatedAt, session.log);
  const selection = selectionOf(query, view, history.data);
  const select = (node: string): void => selectNode(node, selection, view, history.data);
  const compareWith = Number(query.get("with") ?? Number.NaN);
  const isReadable = view.problem === undefined;
  const hasState = isReadable || selection.checkpoint !== undefined;
  return (
    <div class="run">
      <RunHead
        view={view}
        history={history.data}
        selection={selection}
        now={now}
        onChange={onChange}
      />
      {view.warnings.map((warning) => (
        <p key={warning} class="warning" role="status">
          {warning}
        </p>
      ))}
      <WaitingSection view={view} now={now} onDone={onChange} />
      <ErrorSection view={view} onSelect={select} />
      {isReadable && (
        <div class={`pair ${large ? "large" : ""}`}>
          <GraphPanel
            view={view}
            selected={selection.node}
            onSelect={select}
            large={large}
            onLarge={() => setLarge(!large)}
          />
          <TimelinePanel
            view={view}
            history={history.data}
            selected={selection}
            onSelect={({ node, step }) => selectStep({ node, step: step?.step }, history.data)}
          />
        </div>
      )}
      <div class={hasState ? "pair" : ""}>
        <HistorySection
          runId={runId}
          loaded={history}
          selection={selection}
          compareWith={Number.isNaN(compareWith) ? undefined : compareWith}
          now={now}
        />
        {hasState && <StateSection runId={runId} selection={selection} />}
      </div>
      {isReadable && <LedgerSection view={view} now={now} onSelect={select} />}
      <EventsSection lines={log.lines} hasLog={log.hasLog} onSelect={select} />
      <DetailsSection view={view} />
    </div>
  );
}
