import type { RepeatOptions } from "bullmq";
import { now } from "../clock.js";
import { ConfigError, messageOf, show } from "../errors.js";
import { check, checkOptions, integer, text } from "../options.js";
import { checkRunId } from "../state/run-id.js";
import type { State } from "../state/state.js";
import { toKept } from "./job.js";
import type { BullMQ } from "./peers.js";

/** A graph, as far as a client must know it: its name, and by its type the data of its runs. */
export interface SubmittedGraph<D extends object> {
  /** The graph's name. */
  readonly name: string;
  /** The schema version of its data. */
  readonly version: number;
  /** Runs it; a client never does. */
  readonly execute: (state: State<D>) => Promise<State<D>>;
}

/** The name of a graph, and the version that a run of it needs. */
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
  /** Names the run; a new one by default. A run that is in the queue already is not put there twice. */
  readonly runId?: string;
  /** Milliseconds to wait before it may start. */
  readonly delay?: number;
  /** From 1, the most urgent, to 2,097,151. Runs without one come before all that have one. */
  readonly priority?: number;
  /**
   * While a run with the same id is in the queue, unfinished, or for `ttl` milliseconds, no other is put
   * there: the handle is that of the first.
   */
  readonly deduplicate?:
    | string
    | {
        /** Only one run with this id may be in the queue. */
        readonly id: string;
        /** For how many milliseconds; until the run has finished by default. */
        readonly ttl?: number;
      };
  /**
   * The version of the graph that the data is of, by default that of the graph if it is given itself; workers with an
   * older graph leave the run alone.
   */
  readonly version?: number;
}

/** Options of {@link Client.schedule}. */
export interface ScheduleOptions {
  /** Names the schedule; one of the same name is replaced. Without colons. */
  readonly id: string;
  /** When to start runs, as a pattern of cron: `0 3 * * *`. */
  readonly cron?: string;
  /** Or every so many milliseconds. */
  readonly every?: number;
  /** The time zone of the pattern, such as `Europe/Berlin`. */
  readonly timeZone?: string;
  /** The most runs to start; no limit by default. */
  readonly limit?: number;
  /** See {@link SubmitOptions.version}. */
  readonly version?: number;
}

/** The priority that comes last. */
const LAST_PRIORITY = 2 ** 21 - 1;

/** A name that every queue can keep. */
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
  delay: check(
    "a number of milliseconds ≥ 0",
    (value) => typeof value === "number" && value >= 0 && Number.isSafeInteger(Math.ceil(value)),
  ),
  priority: check(
    `an integer from 1 to ${LAST_PRIORITY}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= LAST_PRIORITY,
  ),
  deduplicate: (name: string, value: unknown) => {
    if (typeof value === "string") return dedupId(name, value);
    checkOptions(name, value, { id: dedupId, ttl: integer(1) });
    dedupId(`${name}.id`, (value as { readonly id?: unknown }).id);
  },
  version: integer(0),
};

export function dedup(given: NonNullable<SubmitOptions["deduplicate"]>): {
  id: string;
  ttl?: number;
} {
  if (typeof given === "string") return { id: given };
  return { id: given.id, ...(given.ttl !== undefined && { ttl: given.ttl }) };
}

/** @throws ConfigError if a pattern, or its time zone, says nothing to the queue. */
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
  tried("options.cron", "a pattern of cron", pattern, { pattern });
  if (tz !== undefined) tried("options.timeZone", "a time zone", tz, { pattern, tz });
}
