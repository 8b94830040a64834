/**
 * Events into the log that a program has already.
 *
 * @packageDocumentation
 */
import { ConfigError, show } from "../errors.js";
import type { AnyEvent, Observer } from "../events.js";
import { callable, checkOptions, oneOf } from "../options.js";

/** What {@link loggerObserver} needs of a logger: pino, winston, bunyan, `console` and others have it. */
export interface Logger {
  /** What is worth knowing. */
  info(...args: unknown[]): unknown;
  /** What may become a problem. */
  warn(...args: unknown[]): unknown;
  /** What is one. */
  error(...args: unknown[]): unknown;
  /** What is of interest to few; such events are left out when it is missing. */
  debug?(...args: unknown[]): unknown;
}

/** Options of {@link loggerObserver}. */
export interface LoggerObserverOptions {
  /** What comes first in a call: `"fields"`, the default, as for pino and bunyan; `"message"` as for winston. */
  readonly first?: "fields" | "message";
  /** Which events to log; all by default. */
  readonly filter?: (event: AnyEvent) => boolean;
}

type Level = "debug" | "info" | "warn" | "error";

const levels: readonly (readonly [prefix: string, level: Level])[] = [
  ["graph.fail", "error"],
  ["checkpoint.error", "error"],
  ["checkpoint.quarantine", "error"],
  ["graph.mismatch", "warn"],
  ["node.retry", "warn"],
  ["state.", "debug"],
  ["edge.", "debug"],
];

/**
 * An observer that hands each event to a logger, as fields and a message: failures as errors,
 * retries as warnings, `state.*` and `edge.*` for debugging, the rest as information.
 *
 * @throws ConfigError when the logger has no `info`, `warn` or `error`.
 *
 * @example
 * ```ts
 * import { StateGraph } from "waymark";
 * import { loggerObserver } from "waymark/observers/logger";
 *
 * const logger = { info: console.log, warn: console.warn, error: console.error };
 * const graph = new StateGraph({ name: "quiet", observer: loggerObserver(logger) });
 * console.log(graph.name); // quiet
 * ```
 */
export function loggerObserver(logger: Logger, options: LoggerObserverOptions = {}): Observer {
  for (const method of ["info", "warn", "error"] as const) {
    if (typeof logger?.[method] === "function") continue;
    const problem = `wants an object with info, warn and error, got ${show(logger)}`;
    throw new ConfigError("logger", `${problem} without ${method}`);
  }
  checkOptions("loggerObserver", options, { first: oneOf("fields", "message"), filter: callable });
  const messageFirst = options.first === "message";
  return (event) => {
    if (options.filter?.(event) === false) return;
    const level = levelOf(event);
    const fields = fieldsOf(event);
    const message = `${event.source} ${event.type}`;
    if (messageFirst) logger[level]?.(message, fields);
    else logger[level]?.(fields, message);
  };
}

function levelOf({ type, data }: AnyEvent): Level {
  if (type === "node.complete" && data.error !== undefined) return "warn";
  return levels.find(([prefix]) => type.startsWith(prefix))?.[1] ?? "info";
}

/** Not named as loggers name their own fields: `time`, `level`, `msg`, `name`. */
function fieldsOf({ type, timestamp, source, runId, data }: AnyEvent): object {
  return { event: type, run: runId, graph: source, timestamp, data };
}
