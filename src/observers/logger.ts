/**
 * Sends events to a logger.
 *
 * @packageDocumentation
 */
import { ConfigError, show } from "../errors.js";
import type { AnyEvent, Observer } from "../events.js";
import { callable, checkOptions, oneOf } from "../options.js";
import { levelOf } from "./levels.js";

/** What {@link loggerObserver} needs of a logger; pino, winston, bunyan and `console` have it. */
export interface Logger {
  /** Logs information. */
  info(...args: unknown[]): unknown;
  /** Logs a warning. */
  warn(...args: unknown[]): unknown;
  /** Logs an error. */
  error(...args: unknown[]): unknown;
  /** Logs a debug message. If it is missing, there are none. */
  debug?(...args: unknown[]): unknown;
}

/** Options of {@link loggerObserver}. */
export interface LoggerObserverOptions {
  /** Which argument comes first: `"fields"`, the default, for pino and bunyan; `"message"` for winston. */
  readonly first?: "fields" | "message";
  /** Which events to log; all by default. */
  readonly filter?: (event: AnyEvent) => boolean;
}

/**
 * An observer that passes each event to a logger, as fields and a message: failures as errors,
 * retries as warnings, `state.*` and `edge.*` as debug messages, the rest as information.
 *
 * @throws ConfigError if the logger has no `info`, `warn` or `error`.
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
    const problem = `must be an object with info, warn and error; got ${show(logger)}`;
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

/** Avoids the names that loggers use for their own fields: `time`, `level`, `msg`, `name`. */
function fieldsOf({ type, timestamp, source, runId, path, rootRunId, data }: AnyEvent): object {
  const nested = path && { path, rootRun: rootRunId };
  return { event: type, run: runId, graph: source, ...nested, timestamp, data };
}
