import type { JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import type { RunRow } from "../../api.js";
import { amend } from "../address.js";
import { GraphSelect } from "../parts/graph-select.js";
import { Icon } from "../parts/icon.js";
import { StatusShape, statusWord } from "../parts/status.js";
import { useStudio } from "../studio.js";

/** What can be chosen, in this order. */
const shown: Readonly<Record<RunRow["status"], true>> = {
  ...{ failed: true, paused: true, in_progress: true, completed: true, pending: true },
};
const statuses = Object.keys(shown) as RunRow["status"][];

/** What the list is narrowed to. All of it is in the address. */
export function Filters({
  query,
  runs,
}: {
  readonly query: URLSearchParams;
  readonly runs: readonly RunRow[];
}): JSX.Element {
  const { session } = useStudio();
  const chosen = query.getAll("status");
  const change = (fields: Parameters<typeof amend>[0]): void => amend({ ...fields, cursor: "" });
  return (
    <search class="filters">
      <fieldset class="toggles">
        <legend class="unseen">Status</legend>
        {statuses.map((status) => {
          const on = chosen.includes(status);
          const next = on ? chosen.filter((one) => one !== status) : [...chosen, status];
          return (
            <button
              key={status}
              type="button"
              aria-pressed={on}
              onClick={() => change({ status: next })}
            >
              <StatusShape mark={status} />
              {statusWord(status)}
            </button>
          );
        })}
      </fieldset>
      <GraphSelect
        names={session.graphs.map(({ name }) => name)}
        value={query.get("graph") ?? ""}
        onChange={(graph) => change({ graph })}
      />
      <MetadataFilter
        pairs={query.getAll("metadata")}
        runs={runs}
        onChange={(metadata) => change({ metadata })}
      />
      <TextFilter text={query.get("q") ?? ""} onChange={(q) => change({ q })} />
    </search>
  );
}

function MetadataFilter({
  pairs,
  runs,
  onChange,
}: {
  readonly pairs: readonly string[];
  readonly runs: readonly RunRow[];
  readonly onChange: (pairs: readonly string[]) => void;
}): JSX.Element {
  const [typed, setTyped] = useState("");
  const id = useId();
  const known = new Set(
    runs.flatMap(({ metadata }) =>
      Object.entries(metadata).map(([key, value]) => `${key}=${value}`),
    ),
  );
  const add = (): void => {
    const pair = typed.trim();
    if (!/^[^=]+=/.test(pair)) return;
    setTyped("");
    if (!pairs.includes(pair)) onChange([...pairs, pair]);
  };
  return (
    <>
      <input
        type="text"
        class="metadata-filter"
        aria-label="Metadata, as key=value"
        placeholder="key=value"
        list={id}
        autocomplete="off"
        spellcheck={false}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && add()}
        onChange={add}
      />
      <datalist id={id}>
        {[...known]
          .sort()
          .slice(0, 100)
          .map((pair) => (
            <option key={pair} value={pair} />
          ))}
      </datalist>
      {pairs.map((pair) => (
        <button
          key={pair}
          type="button"
          class="chip"
          aria-label={`Remove the filter ${pair}`}
          onClick={() => onChange(pairs.filter((one) => one !== pair))}
        >
          <span class="cut">{pair}</span>
          <Icon name="cross" />
        </button>
      ))}
    </>
  );
}

const SEARCH_PAUSE_MS = 250;

function TextFilter({
  text,
  onChange,
}: {
  readonly text: string;
  readonly onChange: (text: string) => void;
}): JSX.Element {
  const [typed, setTyped] = useState(text);
  useEffect(() => setTyped(text), [text]);
  // Only what is typed starts the wait.
  useEffect(() => {
    if (typed === text) return;
    const timer = setTimeout(() => onChange(typed), SEARCH_PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      aria-label="Search runs"
      placeholder="Search id, node, error…"
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  );
}
