import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { RunLog, TaggedValue } from "../../../api.js";
import { get, runPath } from "../../client/http.js";
import { clock, count } from "../../format.js";
import { useStudio } from "../../studio.js";
import { preview } from "../../values/tagged.js";

const MOST = 2000;
const PART = 100;
const known = new Set(["ts", "event", "node", "source", "run", "step_id", "parent_id", "path"]);

type Line = RunLog["lines"][number];

/** The run's event log, newest first. `turn` changes when there may be more. */
export function EventsSection({
  runId,
  turn,
  onSelect,
}: {
  readonly runId: string;
  readonly turn: unknown;
  readonly onSelect: (node: string) => void;
}): JSX.Element {
  const { session } = useStudio();
  const { lines, hasLog } = useLog(runId, turn, session.log);
  const [most, setMost] = useState(PART);
  const [typed, setTyped] = useState("");
  const wanted = typed.trim().toLowerCase();
  const fitting = lines
    .filter((line) => wanted === "" || JSON.stringify(line).toLowerCase().includes(wanted))
    .reverse();
  return (
    <section class="section events" aria-labelledby="events">
      <header class="section-head">
        <h2 id="events">Events</h2>
        <span class="muted">{lines.length > 0 ? count(lines.length) : ""}</span>
        <div class="section-tools">
          {lines.length > 0 && (
            <input
              type="search"
              aria-label="Search events"
              placeholder="Search events"
              value={typed}
              onInput={(event) => setTyped(event.currentTarget.value)}
            />
          )}
        </div>
      </header>
      {lines.length === 0 && (
        <p class="muted nothing">
          {hasLog
            ? "The log has nothing of this run."
            : "No event log. A graph with observer: eventLog({ root }) writes one beside its checkpoints."}
        </p>
      )}
      {fitting.length > 0 && (
        <div class="table-wrap log">
          <table aria-label="Events">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Event</th>
                <th scope="col">Node</th>
                <th scope="col">What</th>
              </tr>
            </thead>
            <tbody>
              {fitting.slice(0, most).map((line, index) => (
                <LogRow key={fitting.length - index} line={line} onSelect={onSelect} />
              ))}
            </tbody>
          </table>
          {fitting.length > most && (
            <button type="button" class="plain more" onClick={() => setMost(most + PART * 5)}>
              {count(fitting.length - most)} older
            </button>
          )}
        </div>
      )}
    </section>
  );
}

function LogRow({
  line,
  onSelect,
}: {
  readonly line: Line;
  readonly onSelect: (node: string) => void;
}): JSX.Element {
  const rest = Object.fromEntries(
    Object.entries(line).filter(([key, value]) => !known.has(key) && value !== ""),
  ) as { [key: string]: TaggedValue };
  const path = Array.isArray(line.path) ? line.path.map(String) : [];
  const node = String(line.node ?? "");
  return (
    <tr>
      <td class="mono muted">{clock(String(line.ts))}</td>
      <td class="mono">{String(line.event)}</td>
      <td>
        {node !== "" && (
          <button type="button" class="row-button" onClick={() => onSelect(path[0] ?? node)}>
            {[...path, node].join(" › ")}
          </button>
        )}
      </td>
      <td class="mono muted what">{Object.keys(rest).length > 0 ? preview(rest, 160) : ""}</td>
    </tr>
  );
}

/** The lines of a log; what is new since the last look is added. */
function useLog(
  runId: string,
  turn: unknown,
  hasLog: boolean,
): { lines: readonly Line[]; hasLog: boolean } {
  const [lines, setLines] = useState<readonly Line[]>([]);
  const [isThere, setThere] = useState(hasLog);
  const after = useRef(0);
  const busy = useRef(false);
  const look = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    try {
      for (;;) {
        const page = await get<RunLog>(runPath(runId, `log?after=${after.current}&limit=1000`));
        setThere(page.next !== undefined);
        if (page.lines.length > 0) setLines((before) => [...before, ...page.lines].slice(-MOST));
        if (page.next === undefined || page.lines.length === 0) break;
        after.current = page.next;
      }
    } catch {
      // What is shown stays; the shell says that the connection is lost.
    } finally {
      busy.current = false;
    }
  }, [runId]);
  // A new turn looks again.
  useEffect(() => {
    if (hasLog) void look();
  }, [look, turn, hasLog]);
  return { lines, hasLog: isThere };
}
