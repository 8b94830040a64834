import type { RepeatOptions } from "bullmq";
import { now } from "../clock.js";
import { ConfigError, messageOf, show } from "../errors.js";
import { check, checkOptions, checkRunId, integer, integerFrom, number, text } from "../options.js";
import type { State } from "../state/state.js";
import type { BullMQ } from "./backend.js";
import { toKept } from "./job.js";

/** The part of a graph that a client needs: its name and, as a type, the data of its runs. */
export interface SubmittedGraph<D extends object> {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** Runs the graph; a client never calls it. */
  readonly execute: (state: State<D>) => Promise<State<D>>;
}

/** The name of a graph, and the version that a run of it requires. */
export function nameAndVersion(
  graph: string | Pick<SubmittedGraph<object>, "name" | "version">,
  version: number | undefined,
): { readonly name: string; readonly version: number | undefined } {
  if (typeof graph !== "object" || graph === null) {
    text("graph", graph);
    return { name: graph, version };
  }
  text("graph.name", graph.name);
  return { name: graph.name, version: version ?? graph.version };
}

/** Options of {@link Client.submit}. */
export interface SubmitOptions {
  /** The run's id; a new one by default. A run that is already in the queue is not added again. */
  readonly runId?: string;
  /** How long to wait before it may start, in milliseconds. */
  readonly delay?: number;
  /** From 1, the most urgent, to 2,097,151. Runs without a priority come first. */
  readonly priority?: number;
  /**
   * As long as a run with the same deduplication id is unfinished in the queue, or for `ttl` milliseconds, no other is
   * added: the handle is that of the first run.
   */
  readonly deduplicate?:
    | string
    | {
        /** Only one run with this id may be in the queue. */
        readonly id: string;
        /** How long the id is blocked, in milliseconds; until the run has finished by default. */
        readonly ttl?: number;
      };
  /**
   * The version of the graph that the data belongs to; that of the graph by default, if the graph itself is given.
   * Workers with an older graph do not take the run.
   */
  readonly version?: number;
}

/** Options of {@link Client.schedule}. */
export interface ScheduleOptions {
  /** Names the schedule; replaces a schedule with the same name. Must not contain a colon. */
  readonly id: string;
  /** When to start runs, as a cron pattern: `0 3 * * *`. */
  readonly cron?: string;
  /** Starts a run every this many milliseconds, instead of `cron`. */
  readonly every?: number;
  /** The time zone of the pattern, such as `Europe/Berlin`. */
  readonly timeZone?: string;
  /** The largest number of runs to start; no limit by default. */
  readonly limit?: number;
  /** See {@link SubmitOptions.version}. */
  readonly version?: number;
}

/** The lowest priority. */
const LAST_PRIORITY = 2 ** 21 - 1;

/** A name that every queue can store. */
const isName = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && toKept(value) === value;

const scheduleId = check("a name without colons", (value) => isName(value) && !value.includes(":"));

const dedupId = check("a non-empty string without NUL", isName);

export const scheduleOptions = {
  id: scheduleId,
  cron: text,
  every: integer(1),
  timeZone: text,
  limit: integer(1),
  version: integer(0),
};

export const submitOptions = {
  runId: (_name: string, value: unknown) => void checkRunId(value),
  delay: number(0, Number.MAX_SAFE_INTEGER),
  priority: integerFrom(1, LAST_PRIORITY),
  deduplicate: (name: string, value: unknown) => {
    if (typeof value === "string") return dedupId(name, value);
    checkOptions(name, value, { id: dedupId, ttl: integer(1) });
    dedupId(`${name}.id`, (value as { readonly id?: unknown }).id);
  },
  version: integer(0),
};

/**
 * @internal
 * @throws ConfigError if the queue can't parse the pattern or its time zone.
 */
export function checkRepeat(
  { pattern, tz }: { readonly pattern?: string; readonly tz?: string },
  { getNextMillis }: Pick<BullMQ, "getNextMillis">,
): void {
  if (pattern === undefined) return;
  const tried = (option: string, expected: string, given: unknown, repeat: RepeatOptions): void => {
    try {
      getNextMillis(now(), repeat);
    } catch (error) {
      throw new ConfigError(option, `must be ${expected}; got ${show(given)}: ${messageOf(error)}`);
    }
  };
  tried("options.cron", "a cron pattern", pattern, { pattern });
  if (tz !== undefined) tried("options.timeZone", "a time zone", tz, { pattern, tz });
}
