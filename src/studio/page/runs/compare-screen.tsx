import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RunView, StateDifference } from "../../api.js";
import { amend } from "../address.js";
import { useGet } from "../client/hooks.js";
import { get, type RequestFailure, runPath } from "../client/http.js";
import { count, duration, moment, money } from "../format.js";
import { Section } from "../parts/section.js";
import { Blank, Loading, Problem } from "../parts/states.js";
import { Status } from "../parts/status.js";
import { Changes } from "../run/sections/difference.js";
import { markOf, RunLink } from "./runs-table.js";

const MOST = 6;

/** Several runs side by side, and what is different between the data of two. */
export function CompareScreen({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const runIds = [...new Set(query.getAll("run"))].slice(0, MOST);
  const { views, failure } = useViews(runIds);
  if (runIds.length < 2) {
    return (
      <Blank icon="compare" title="Nothing to compare">
        <p class="muted">Select two or more runs in the list, then Compare.</p>
        <a href="#/runs">All runs</a>
      </Blank>
    );
  }
  const [first = "", second = ""] = runIds;
  const from = query.get("from") ?? first;
  const to = query.get("to") ?? second;
  return (
    <div class="compare">
      <header class="screen-head">
        <h1>Compare</h1>
      </header>
      {failure !== undefined && <Problem failure={failure} />}
      {views === undefined && failure === undefined && <Loading />}
      {views !== undefined && <Side views={views} />}
      {views !== undefined && <DataDifference runIds={runIds} from={from} to={to} views={views} />}
    </div>
  );
}

function useViews(runIds: readonly string[]): {
  views: readonly RunView[] | undefined;
  failure: RequestFailure | undefined;
} {
  const [views, setViews] = useState<readonly RunView[]>();
  const [failure, setFailure] = useState<RequestFailure>();
  const key = JSON.stringify(runIds);
  useEffect(() => {
    const ending = new AbortController();
    const ids = JSON.parse(key) as string[];
    Promise.all(ids.map((runId) => get<RunView>(runPath(runId), ending.signal))).then(
      setViews,
      (reason: RequestFailure) => ending.signal.aborted || setFailure(reason),
    );
    return () => ending.abort();
  }, [key]);
  return { views, failure };
}

const rows: readonly (readonly [name: string, cell: (view: RunView) => JSX.Element | string])[] = [
  ["Status", ({ run }) => <Status mark={markOf(run)} />],
  ["Graph", ({ run }) => run.graph || "–"],
  ["Node", ({ run, error }) => error?.node ?? run.node ?? "–"],
  ["Error", ({ error }) => error?.message ?? "–"],
  ["Steps", ({ run }) => count(run.step)],
  ["Started", ({ run }) => moment(run.startedAt)],
  ["Elapsed", ({ run }) => duration(run.elapsedMs)],
  ["Worked", ({ workedMs }) => duration(workedMs)],
  ["Cost", ({ ledger }) => money(ledger.usage.costUsd)],
  ["Tokens", ({ ledger }) => count(ledger.usage.inputTokens + ledger.usage.outputTokens)],
  ["Crashes", ({ crashes }) => count(crashes)],
];

function Side({ views }: { readonly views: readonly RunView[] }): JSX.Element {
  const nodes = [...new Set(views.flatMap(({ visits }) => Object.keys(visits)))];
  const keys = [...new Set(views.flatMap(({ run }) => Object.keys(run.metadata)))].sort();
  return (
    <div class="table-wrap">
      <table aria-label="Runs side by side" class="sides-table">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">What</span>
            </th>
            {views.map(({ run }) => (
              <th key={run.runId} scope="col">
                <RunLink runId={run.runId} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, cell]) => (
            <SideRow key={name} name={name} cells={views.map(cell)} />
          ))}
        </tbody>
        <SideGroup
          title="Metadata"
          names={keys}
          views={views}
          cell={(key, { run }) => String(run.metadata[key] ?? "–")}
        />
        <SideGroup title="Nodes" names={nodes} views={views} cell={nodeCell} />
      </table>
    </div>
  );
}

function SideGroup({
  title,
  names,
  views,
  cell,
}: {
  readonly title: string;
  readonly names: readonly string[];
  readonly views: readonly RunView[];
  readonly cell: (name: string, view: RunView) => string;
}): JSX.Element | null {
  if (names.length === 0) return null;
  return (
    <tbody>
      <tr>
        <th scope="rowgroup" colSpan={views.length + 1}>
          {title}
        </th>
      </tr>
      {names.map((name) => (
        <SideRow key={name} name={name} cells={views.map((view) => cell(name, view))} />
      ))}
    </tbody>
  );
}

function SideRow({
  name,
  cells,
}: {
  readonly name: string;
  readonly cells: readonly (JSX.Element | string)[];
}): JSX.Element {
  const texts = cells.filter((cell) => typeof cell === "string");
  const differ = new Set(texts).size > 1;
  return (
    <tr class={differ ? "differ" : ""}>
      <th scope="row">{name}</th>
      {cells.map((cell, index) => (
        <td key={index}>{cell}</td>
      ))}
    </tr>
  );
}

function nodeCell(node: string, { steps, visits }: RunView): string {
  const times = visits[node] ?? 0;
  if (times === 0) return "–";
  const ms = steps
    .filter((step) => step.node === node)
    .reduce((sum, { durationMs = 0 }) => sum + durationMs, 0);
  return `${times === 1 ? "" : `${times} × `}${duration(ms)}`;
}

function DataDifference({
  runIds,
  from,
  to,
  views,
}: {
  readonly runIds: readonly string[];
  readonly from: string;
  readonly to: string;
  readonly views: readonly RunView[];
}): JSX.Element {
  const newest = new Map(views.map(({ run, checkpointId }) => [run.runId, checkpointId]));
  const params = new URLSearchParams({
    run: to,
    from: newest.get(from) ?? "",
    to: newest.get(to) ?? "",
  });
  const { data, failure } = useGet<StateDifference>(
    newest.get(from) && newest.get(to) ? runPath(from, `diff?${params}`) : undefined,
  );
  const choose = (name: "from" | "to", value: string): JSX.Element => (
    <select
      aria-label={name === "from" ? "From" : "To"}
      class="mono"
      value={value}
      onChange={(event) => amend({ [name]: event.currentTarget.value })}
    >
      {runIds.map((runId) => (
        <option key={runId} value={runId}>
          {runId}
        </option>
      ))}
    </select>
  );
  return (
    <Section
      title="Difference of the data"
      tools={
        <>
          {choose("from", from)}
          <span aria-hidden="true">→</span>
          {choose("to", to)}
        </>
      }
    >
      {failure !== undefined && <Problem failure={failure} />}
      {data !== undefined && <Changes difference={data} />}
    </Section>
  );
}
