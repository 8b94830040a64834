import type { LogLine } from "../../observers/log/reader.js";
import type { Look, Paint } from "./style.js";
import { cut, plain, toJson } from "./text.js";

const known = new Set(["ts", "step_id", "parent_id", "event", "node", "run", "source"]);

const looks: Readonly<Record<string, Look>> = {
  "graph.complete": "green",
  "graph.fail": "red",
  "graph.pause": "yellow",
  "node.retry": "yellow",
  "checkpoint.error": "red",
  "checkpoint.quarantine": "red",
  progress: "bold",
};

const EVENT = 19;
const MORE = 300;

/** An event as one line of text. */
export function logText(line: LogLine, paint: Paint): string {
  const { ts, event, node } = line;
  const rest = Object.entries(line).filter(([name]) => !known.has(name));
  const more = rest.map(([name, value]) => `${name}=${shown(value)}`).join(" ");
  const text = [
    paint("dim", plain(ts)),
    paint(looks[event], plain(event).padEnd(EVENT)),
    plain(node),
    paint("dim", cut(plain(more), MORE)),
  ];
  return text
    .filter((part) => part !== "")
    .join("  ")
    .trimEnd();
}

function shown(value: unknown): string {
  return typeof value === "string" && /^[^\s"=]+$/.test(value) ? value : toJson(value);
}
