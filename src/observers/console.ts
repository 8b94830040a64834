import type { AnyEvent, Observer } from "../events.js";
import { checkOptions, flag } from "../options.js";
import { type Level, levelOf } from "./levels.js";

/** Options of {@link consoleObserver}. */
export interface ConsoleObserverOptions {
  /** Prints each event as one line of JSON instead of text; `false` by default. */
  readonly json?: boolean;
}

/**
 * Prints one line for each event: level, event, run, and the event's own fields.
 *
 * @throws ConfigError if an option is invalid.
 *
 * @example
 * ```ts
 * import { consoleObserver, StateGraph } from "waymark";
 *
 * const graph = new StateGraph({ name: "article", observer: consoleObserver({ json: true }) });
 * console.log(graph.name); // article
 * ```
 */
export function consoleObserver(options: ConsoleObserverOptions = {}): Observer {
  checkOptions("consoleObserver", options, { json: flag });
  const format = options.json === true ? asJson : eventLine;
  return (event) => {
    const level = levelOf(event);
    console[level](oneLine(format(level, event)));
  };
}

function asJson(level: Level, { type, timestamp, source, runId, path, data }: AnyEvent): string {
  const head = { level, event: type, run: runId, timestamp, source, ...(path && { path }) };
  // Twice: to be first in the line, and to override fields of a custom event that have the same names.
  return json({ ...head, ...written(data), ...head }) ?? JSON.stringify(head);
}

function eventLine(level: Level, { type, timestamp, source, runId, path, data }: AnyEvent): string {
  const head = { run: runId, source, ...(path && { path: path.join("/") }) };
  const fields = Object.entries({ ...head, ...written(data), ...head }).map(
    ([name, value]) => `${inLine(name)}=${inLine(value)}`,
  );
  return `${timestamp} ${level.toUpperCase().padEnd(5)} ${inLine(type).padEnd(17)} ${fields.join(" ")}`;
}

/** The fields of an event without Error objects, which JSON can't hold: `error` has the message. */
function written(data: object | undefined): object {
  return Object.fromEntries(
    Object.entries({ ...data }).filter(([, value]) => !(value instanceof Error)),
  );
}

/** A value without line breaks; quoted only if it would otherwise be unclear where it ends. */
function inLine(value: unknown): string {
  return typeof value === "string" && /^[\w.:/-]+$/.test(value)
    ? value
    : (json(value) ?? typeof value);
}

/** JSON, if possible: the events that a node emits may hold anything. */
function json(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_key, item: unknown) =>
      typeof item === "bigint" ? String(item) : item,
    );
  } catch {
    return undefined;
  }
}

/** Escapes the line breaks and terminal controls that JSON lets through. */
function oneLine(line: string): string {
  return line.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
