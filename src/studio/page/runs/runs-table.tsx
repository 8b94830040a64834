import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { RunRow } from "../../api.js";
import { runHref } from "../address.js";
import { Icon } from "../parts/icon.js";
import { type Mark, Status } from "../parts/status.js";
import type { Column } from "./columns.js";

/** The table of runs. */
export function RunsTable({
  runs,
  columns,
  selected,
  now,
  onSelect,
}: {
  readonly runs: readonly RunRow[];
  readonly columns: readonly Column[];
  readonly selected: ReadonlySet<string>;
  readonly now: number;
  readonly onSelect: (runIds: readonly string[], on: boolean) => void;
}): JSX.Element {
  const all = runs.map(({ runId }) => runId);
  const allOn = all.length > 0 && all.every((runId) => selected.has(runId));
  const isNew = useChanged(runs);
  return (
    <div class="table-wrap">
      <table class="runs" aria-label="Runs">
        <thead>
          <tr>
            <th class="pick">
              <input
                type="checkbox"
                aria-label="Select all runs of this page"
                checked={allOn}
                onChange={() => onSelect(all, !allOn)}
              />
            </th>
            <th scope="col">Status</th>
            <th scope="col">Run</th>
            <th scope="col">Graph</th>
            <th scope="col">Node</th>
            {columns.map(({ key, title, kind }) => (
              <th key={key} scope="col" class={classOf(key, kind)}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr
              key={run.runId}
              class={isNew(run) ? "changed" : ""}
              aria-selected={selected.has(run.runId)}
            >
              <td class="pick">
                <input
                  type="checkbox"
                  aria-label={`Select ${run.runId}`}
                  checked={selected.has(run.runId)}
                  onChange={(event) => onSelect([run.runId], event.currentTarget.checked)}
                />
              </td>
              <td class="c-status">
                <Status mark={markOf(run)} />
              </td>
              <td class="c-run">
                <RunLink runId={run.runId} />
              </td>
              <td class="c-graph cut">{run.graph || "–"}</td>
              <td class="c-node">
                <Where run={run} />
              </td>
              {columns.map(({ key, kind, cell }) => (
                <td key={key} class={classOf(key, kind)}>
                  {cell(run, now)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function classOf(key: string, kind: Column["kind"]): string {
  const name = key.startsWith("metadata.") ? "metadata" : key;
  return `c-${name} ${kind === "number" ? "number" : "cut"}`;
}

/** How a run looks: one that can't be read is corrupt, and one that nobody works on does not run. */
export function markOf({ status, problem, live }: RunRow): Mark {
  if (problem !== undefined) return "corrupt";
  return status === "in_progress" && live === false ? "stopped" : status;
}

/** A run's id, cut in its middle where there is no room. */
export function RunLink({ runId }: { readonly runId: string }): JSX.Element {
  return (
    <a class="run-id mono" href={runHref(runId)} aria-label={runId} title={runId}>
      <span class="cut">{runId.slice(0, -4)}</span>
      <span>{runId.slice(-4)}</span>
    </a>
  );
}

/** Where a run is, and what there is to say about it. */
function Where({ run }: { readonly run: RunRow }): JSX.Element {
  const { status, node, nextNode, error, problem, waitsFor, warnings } = run;
  const note = problem?.message ?? (status === "failed" ? error?.message : waitsFor[0]);
  const place = (status === "failed" ? error?.node : undefined) ?? (isOver(run) ? node : nextNode);
  return (
    <>
      <span class="place">{place || node || "–"}</span>
      {note !== undefined && note !== "" && (
        <span class={`note ${markOf(run)}`} title={note}>
          {note}
        </span>
      )}
      {warnings.map((warning) => (
        <span key={warning} class="size-warning" role="img" aria-label={warning} title={warning}>
          <Icon name="warning" />
        </span>
      ))}
    </>
  );
}

function isOver({ status }: RunRow): boolean {
  return status === "completed";
}

/** Which runs are new or were saved since the last rendering; none at the first. */
function useChanged(runs: readonly RunRow[]): (run: RunRow) => boolean {
  const before = useRef<ReadonlyMap<string, string> | undefined>(undefined);
  const known = before.current;
  useEffect(() => {
    before.current = new Map(runs.map(({ runId, savedAt }) => [runId, savedAt]));
  }, [runs]);
  return ({ runId, savedAt }) => known !== undefined && known.get(runId) !== savedAt;
}
