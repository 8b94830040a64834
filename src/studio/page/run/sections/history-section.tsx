import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunHistory } from "../../../api.js";
import { amend } from "../../address.js";
import type { RequestFailure } from "../../client/http.js";
import { bytes, count } from "../../format.js";
import { Section } from "../../parts/section.js";
import { Failed, Loading } from "../../parts/states.js";
import { StatusShape, statusWord } from "../../parts/status.js";
import { Time } from "../../runs/columns.js";
import { useKey } from "../../shell/shortcuts.js";
import { type Selection, selectCheckpoint } from "../selection.js";
import type { useHistory } from "../use-history.js";
import { Difference } from "./difference.js";

const PART = 200;

/** The checkpoints of a run, newest first, and the difference of two of them. */
export function HistorySection({
  runId,
  loaded,
  selection,
  compareWith,
  now,
}: {
  readonly runId: string;
  readonly loaded: ReturnType<typeof useHistory>;
  readonly selection: Selection;
  /** The checkpoint to compare with; by default the one before the selected one. */
  readonly compareWith: number | undefined;
  readonly now: number;
}): JSX.Element {
  const [most, setMost] = useState(PART);
  const list = useRef<HTMLTableSectionElement>(null);
  const { data, failure, reload, more } = loaded;
  const checkpoints = data?.checkpoints ?? [];
  const total = data?.total ?? 0;
  const current = selection.checkpoint?.sequence;
  const at = checkpoints.findIndex(({ sequence }) => sequence === current);
  const other = checkpoints.find(({ sequence }) => sequence === compareWith) ?? checkpoints[at + 1];
  useKey(({ key }) => {
    const next = checkpoints[at + (key === "j" ? 1 : key === "k" ? -1 : Number.NaN)];
    if (next !== undefined) selectCheckpoint(next.sequence);
  });
  // Scrolls to a selection that was made elsewhere.
  useEffect(() => {
    if (selection.chosen)
      intoSight(list.current?.querySelector<HTMLElement>("[aria-selected=true]"));
  }, [current, selection.chosen]);
  return (
    <Section
      title="History"
      kind="history"
      note={data !== undefined && `${count(total)} ${total === 1 ? "checkpoint" : "checkpoints"}`}
    >
      {failure !== undefined && data === undefined && <NoHistory {...{ failure, reload }} />}
      {data === undefined && failure === undefined && <Loading />}
      {data !== undefined && data.problems.length > 0 && (
        <ul class="problems" aria-label="Problems">
          {data.problems.map(({ sequence, problem, expected, actual }) => (
            <li key={`${sequence} ${problem}`}>
              <strong>
                {sequence === 0 ? "The run" : `Checkpoint ${sequence}`} is {problem}.
              </strong>{" "}
              Expected {expected}; found {actual}.
            </li>
          ))}
        </ul>
      )}
      {checkpoints.length > 0 && (
        <div class="table-wrap checkpoints">
          <table aria-label="Checkpoints">
            <thead>
              <tr>
                <th scope="col" class="number">
                  #
                </th>
                <th scope="col">Saved for</th>
                <th scope="col">Node</th>
                <th scope="col" class="number">
                  Step
                </th>
                <th scope="col" class="number">
                  Size
                </th>
                <th scope="col" class="number">
                  Saved
                </th>
                <th scope="col" class="pick">
                  Compare
                </th>
              </tr>
            </thead>
            <tbody ref={list}>
              {checkpoints.slice(0, most).map((one) => (
                <tr key={one.sequence} aria-selected={one.sequence === current}>
                  <td class="number">
                    <button
                      type="button"
                      class="row-button mono"
                      aria-label={`Checkpoint ${one.sequence}`}
                      aria-pressed={one.sequence === current}
                      onClick={() => selectCheckpoint(one.sequence)}
                    >
                      {one.sequence}
                    </button>
                  </td>
                  <td>
                    <span class="status" title={statusWord(one.status)}>
                      <StatusShape mark={one.status === "in_progress" ? "none" : one.status} />
                      {one.reason || statusWord(one.status)}
                    </span>
                  </td>
                  <td class="cut">{nameOf(one)}</td>
                  <td class="number">{count(one.step)}</td>
                  <td class="number">{bytes(one.bytes)}</td>
                  <td class="number">
                    <Time time={one.savedAt} now={now} />
                  </td>
                  <td class="pick">
                    <input
                      type="radio"
                      name="compare"
                      aria-label={`Compare with checkpoint ${one.sequence}`}
                      checked={other?.sequence === one.sequence}
                      disabled={one.sequence === current}
                      onChange={() => amend({ with: String(one.sequence) })}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
          {total > most && (
            <button
              type="button"
              class="plain more"
              onClick={() => {
                if (most + PART > checkpoints.length) more();
                setMost(most + PART);
              }}
            >
              {count(total - Math.min(most, checkpoints.length))} older
            </button>
          )}
        </div>
      )}
      {selection.checkpoint !== undefined && (
        <Difference runId={runId} one={selection.checkpoint} other={other} />
      )}
    </Section>
  );
}

/** Why there is no list. A store without history is not an error, and can't be retried. */
function NoHistory({
  failure,
  reload,
}: {
  readonly failure: RequestFailure;
  readonly reload: () => void;
}): JSX.Element {
  if (failure.code !== "NO_HISTORY") return <Failed failure={failure} onRetry={reload} />;
  return (
    <p class="muted nothing">This store keeps no history, only the newest State of each run.</p>
  );
}

function nameOf({ node, unfinished }: RunHistory["checkpoints"][number]): string {
  if (node === "") return unfinished ? "in the first node" : "start";
  return unfinished ? `after ${node}` : node;
}

/** Scrolls the table to a row, without scrolling the page. */
function intoSight(row: HTMLElement | null | undefined): void {
  const box = row?.closest<HTMLElement>(".table-wrap");
  if (!row || !box) return;
  const top = row.offsetTop - 32;
  if (top < box.scrollTop) box.scrollTop = top;
  const bottom = row.offsetTop + row.offsetHeight;
  if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight;
}
