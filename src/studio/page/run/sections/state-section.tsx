import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import type { StateMatches, StateView, TaggedValue, ValueView } from "../../../api.js";
import { useGet, useSettled } from "../../client/hooks.js";
import { get, runPath } from "../../client/http.js";
import { Copy } from "../../parts/command.js";
import { Section } from "../../parts/section.js";
import { Failed, Loading } from "../../parts/states.js";
import { type Key, preview, shownOf } from "../../values/tagged.js";
import { type FetchValue, ValueTree } from "../../values/value-tree.js";
import type { Selection } from "../selection.js";

/** What is in a StateView besides the data and what the screen shows elsewhere. */
const elsewhere = new Set(["data", "runId", "checkpointId", "sequence"]);

/** The State of the selected checkpoint, as a tree. */
export function StateSection({
  runId,
  selection,
}: {
  readonly runId: string;
  readonly selection: Selection;
}): JSX.Element {
  const id = selection.checkpoint?.checkpointId;
  const [typed, setTyped] = useState("");
  const search = useSettled(typed.trim());
  const at = id === undefined ? "" : `at=${encodeURIComponent(id)}`;
  const { data, failure, reload } = useGet<StateView>(runPath(runId, `state?${at}`));
  const found = useGet<StateMatches>(
    search === "" ? undefined : runPath(runId, `state?${at}&q=${encodeURIComponent(search)}`),
  );
  const fetchValue = useCallback<FetchValue>(
    (path, from) => {
      const keys = encodeURIComponent(JSON.stringify(path));
      return get<ValueView>(runPath(runId, `state?${at}&path=${keys}&from=${from}`));
    },
    [runId, at],
  );
  return (
    <Section
      title="State"
      kind="state"
      note={data !== undefined && whereOf(data, selection)}
      tools={
        <>
          <input
            type="search"
            aria-label="Search the State"
            placeholder="Search keys and values"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
          {data !== undefined && (
            <Copy text={JSON.stringify(data.data, undefined, 2)} label="Copy the data as JSON" />
          )}
        </>
      }
    >
      {failure !== undefined && data === undefined && <Failed failure={failure} onRetry={reload} />}
      {data === undefined && failure === undefined && <Loading lines={8} />}
      {search !== "" && <Matches matches={found.data} text={search} />}
      {data !== undefined && search === "" && (
        <>
          <ValueTree
            key={data.checkpointId}
            label="Data"
            entries={shownOf(data.data).entries}
            path={["data"]}
            fetchValue={fetchValue}
          />
          {shownOf(data.data).entries.length === 0 && (
            <p class="muted nothing">The data is empty.</p>
          )}
          <details class="rest">
            <summary>The rest of the checkpoint</summary>
            <ValueTree
              key={data.checkpointId}
              label="Checkpoint"
              open={0}
              entries={Object.entries(data)
                .filter(([key]) => !elsewhere.has(key))
                .map(([key, value]) => ({ label: key, keys: [key], value: value as TaggedValue }))}
              path={[]}
              fetchValue={fetchValue}
            />
          </details>
        </>
      )}
    </Section>
  );
}

function whereOf({ sequence, step, checkpointNode }: StateView, { chosen }: Selection): string {
  const place = checkpointNode === "" ? "before the first node" : `after ${checkpointNode}`;
  return `${chosen ? "" : "newest, "}checkpoint ${sequence}, step ${step}, ${place}`;
}

function Matches({
  matches,
  text,
}: {
  readonly matches: StateMatches | undefined;
  readonly text: string;
}): JSX.Element {
  if (matches === undefined) return <Loading lines={3} />;
  if (matches.matches.length === 0) {
    return <p class="muted nothing">Nothing in this State has “{text}”.</p>;
  }
  return (
    <>
      <ul class="changes" aria-label="Found">
        {matches.matches.map(({ path, value }) => (
          <li key={path.join("\0")} class="change">
            <span class="path">{path.filter(isPlain).join(".")}</span>
            <span class="sides">{preview(value, 160)}</span>
          </li>
        ))}
      </ul>
      {matches.more && <p class="muted nothing">There is more; search for something rarer.</p>}
    </>
  );
}

/** Tags are how values are written down, not where they are. */
function isPlain(key: Key): boolean {
  return typeof key === "number" || !key.startsWith("$");
}
