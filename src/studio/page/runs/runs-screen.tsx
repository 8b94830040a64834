import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { amend, go, href, runHref } from "../address.js";
import { useNow } from "../client/hooks.js";
import { count } from "../format.js";
import { Command } from "../parts/command.js";
import { Icon } from "../parts/icon.js";
import { Menu } from "../parts/menu.js";
import { Blank, Failed, Loading } from "../parts/states.js";
import { useKey } from "../shell/shortcuts.js";
import { useChoices, useStudio } from "../studio.js";
import { type Column, columnsOf, shownColumns, storeColumns, storedColumns } from "./columns.js";
import { DeleteRuns } from "./delete-runs.js";
import { Filters } from "./filters.js";
import { RunsTable } from "./runs-table.js";
import { useRuns } from "./use-runs.js";

/** All runs of the store, newest first. */
export function RunsScreen({ query }: { readonly query: URLSearchParams }): JSX.Element {
  const { session } = useStudio();
  const [live, setLive] = useState(true);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [chosen, setChosen] = useState(storedColumns);
  const [deleting, setDeleting] = useState(false);
  const list = useRuns(query.toString(), live);
  const { runs, next, failure, stopped, changes, reload } = list;
  const now = useNow();
  const isFiltered = [...query.keys()].some((key) => key !== "cursor");
  const all = columnsOf(runs ?? []);
  const shown = shownColumns(all, runs ?? [], chosen);
  const select = (runIds: readonly string[], on: boolean): void => {
    const set = new Set(selected);
    for (const runId of runIds) on ? set.add(runId) : set.delete(runId);
    setSelected(set);
  };
  useRowKeys((runId) => select([runId], !selected.has(runId)));
  useChoices(() => [
    { title: live ? "Stop following" : "Follow", group: "Runs here", choose: () => setLive(!live) },
    { title: "Remove all filters", group: "Runs here", choose: () => go("#/runs") },
  ]);
  return (
    <>
      <h1 class="unseen">Runs</h1>
      <div class="bar">
        <Filters query={query} runs={runs ?? []} />
        <div class="bar-end">
          <Columns
            all={all}
            shown={shown}
            onChange={(key, on) => {
              const nextChosen = { ...chosen, [key]: on };
              setChosen(nextChosen);
              storeColumns(nextChosen);
            }}
          />
          <button
            type="button"
            class={`live ${live ? "on" : ""}`}
            aria-pressed={live}
            onClick={() => {
              setLive(!live);
              if (!live) reload();
            }}
          >
            <span class="dot" />
            live
          </button>
        </div>
      </div>
      {changes > 0 && !live && (
        <button type="button" class="news" onClick={reload}>
          {changes} {changes === 1 ? "change" : "changes"} since. Show
        </button>
      )}
      {failure !== undefined && runs === undefined && <Failed failure={failure} onRetry={reload} />}
      {runs === undefined && failure === undefined && isFiltered && (
        <p class="searching muted" role="status">
          {list.scanned === 0 ? "Searching…" : `Searching… ${count(list.scanned)} runs so far`}
          <button type="button" onClick={list.stop}>
            Stop
          </button>
        </p>
      )}
      {runs === undefined && failure === undefined && <Loading lines={12} />}
      {runs?.length === 0 && !stopped && (next === undefined || !isFiltered) && (
        <Nothing isFiltered={isFiltered} store={session.store} />
      )}
      {runs?.length === 0 && stopped && (
        <Blank icon="search" title="The search was stopped">
          {list.scanned > 0 && (
            <p class="muted">{`${count(list.scanned)} runs were looked at; none of them fits.`}</p>
          )}
          <button type="button" onClick={reload}>
            Search again
          </button>
        </Blank>
      )}
      {runs !== undefined && runs.length > 0 && (
        <RunsTable runs={runs} columns={shown} selected={selected} now={now} onSelect={select} />
      )}
      {runs !== undefined && <Pages query={query} next={next} found={runs.length} />}
      {selected.size > 0 && (
        <div class="selection" role="status">
          <span>
            {selected.size} {selected.size === 1 ? "run" : "runs"} selected
          </span>
          <button
            type="button"
            disabled={selected.size < 2}
            onClick={() => go(href(["compare"], { run: [...selected] }))}
          >
            <Icon name="compare" />
            Compare
          </button>
          {!session.readOnly && (
            <button type="button" class="danger" onClick={() => setDeleting(true)}>
              <Icon name="trash" />
              Delete
            </button>
          )}
          <button type="button" class="plain" onClick={() => setSelected(new Set())}>
            Clear
          </button>
        </div>
      )}
      {deleting && (
        <DeleteRuns
          runIds={[...selected]}
          onClose={() => setDeleting(false)}
          onDone={() => {
            setDeleting(false);
            setSelected(new Set());
            reload();
          }}
        />
      )}
    </>
  );
}

function Pages({
  query,
  next,
  found,
}: {
  readonly query: URLSearchParams;
  readonly next: string | undefined;
  readonly found: number;
}): JSX.Element | null {
  const cursor = query.get("cursor");
  if (cursor === null && next === undefined) return null;
  const to = (value: string): string => {
    const params = new URLSearchParams(query);
    params.delete("cursor");
    if (value !== "") params.set("cursor", value);
    return `#/runs?${params}`;
  };
  return (
    <nav class="pages" aria-label="Pages">
      {cursor !== null && (
        <>
          <a href={to("")}>Newest</a>
          <button type="button" class="plain" onClick={() => history.back()}>
            <Icon name="left" />
            Back
          </button>
        </>
      )}
      {next !== undefined && (
        <a href={to(next)} rel="next">
          {found === 0 ? "Nothing found yet. Search further" : "Next 50"}
          <Icon name="right" />
        </a>
      )}
    </nav>
  );
}

function Columns({
  all,
  shown,
  onChange,
}: {
  readonly all: readonly Column[];
  readonly shown: readonly Column[];
  readonly onChange: (key: string, on: boolean) => void;
}): JSX.Element {
  return (
    <Menu label="Columns" kind="columns">
      {() =>
        all.map(({ key, title }) => (
          <label key={key} class="check">
            <input
              type="checkbox"
              checked={shown.some((column) => column.key === key)}
              onChange={(event) => onChange(key, event.currentTarget.checked)}
            />
            <span class="cut">{title}</span>
            {key.startsWith("metadata.") && <span class="muted">metadata</span>}
          </label>
        ))
      }
    </Menu>
  );
}

function Nothing({
  isFiltered,
  store,
}: {
  readonly isFiltered: boolean;
  readonly store: string;
}): JSX.Element {
  if (isFiltered) {
    return (
      <Blank icon="search" title="No runs match">
        <p class="muted">No run in {store} matches these filters.</p>
        <button
          type="button"
          onClick={() => amend({ status: "", graph: "", metadata: "", q: "", cursor: "" })}
        >
          Remove the filters
        </button>
      </Blank>
    );
  }
  return (
    <Blank icon="runs" title="No runs yet">
      <p class="muted">
        Runs appear here as soon as a graph with <code class="mono">checkpoint</code> saves to{" "}
        {store}.
      </p>
      <Command command="waymark run --help" />
    </Blank>
  );
}

/** j and k walk through the rows, x selects, Enter opens what has the focus. */
function useRowKeys(toggle: (runId: string) => void): void {
  useKey((event) => {
    const links = [...document.querySelectorAll<HTMLAnchorElement>("table.runs .run-id")];
    const row = document.activeElement?.closest("tr");
    const at = links.findIndex((link) => row?.contains(link));
    const by = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
    if (by !== 0) links[Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
    const current = links[at];
    if (current === undefined) return;
    const runId = current.title;
    if (event.key === "x") toggle(runId);
    if (event.key === "o") go(runHref(runId));
  });
}
