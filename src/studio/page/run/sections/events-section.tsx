import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { TaggedValue } from "../../../api.js";
import { clock, count } from "../../format.js";
import { Section } from "../../parts/section.js";
import { preview } from "../../values/tagged.js";
import type { LogLine } from "../use-log.js";

const PART = 100;
const known = new Set(["ts", "event", "node", "source", "run", "step_id", "parent_id", "path"]);

/** The run's event log, newest first. */
export function EventsSection({
  lines,
  hasLog,
  onSelect,
}: {
  readonly lines: readonly LogLine[];
  readonly hasLog: boolean;
  readonly onSelect: (node: string) => void;
}): JSX.Element {
  const [most, setMost] = useState(PART);
  const [typed, setTyped] = useState("");
  const wanted = typed.trim().toLowerCase();
  const fitting = lines
    .filter((line) => wanted === "" || JSON.stringify(line).toLowerCase().includes(wanted))
    .reverse();
  return (
    <Section
      title="Events"
      kind="events"
      note={lines.length > 0 && count(lines.length)}
      tools={
        lines.length > 0 && (
          <input
            type="search"
            aria-label="Search events"
            placeholder="Search events"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        )
      }
    >
      {lines.length === 0 && (
        <p class="muted nothing">
          {hasLog
            ? "The log has no events of this run."
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
    </Section>
  );
}

function LogRow({
  line,
  onSelect,
}: {
  readonly line: LogLine;
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
            {[...path, ...(path.at(-1) === node ? [] : [node])].join(" › ")}
          </button>
        )}
      </td>
      <td class="mono muted what">{Object.keys(rest).length > 0 ? preview(rest, 160) : ""}</td>
    </tr>
  );
}
