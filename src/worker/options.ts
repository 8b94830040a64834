import { constants } from "node:os";
import { type CheckpointStore, isCheckpointStore } from "../checkpoint/store.js";
import { LONGEST_TIMER } from "../clock.js";
import { ConfigError, show } from "../errors.js";
import type { EventType } from "../events.js";
import {
  type Check,
  callable,
  check,
  checkOptions,
  duration,
  integer,
  integerFrom,
} from "../options.js";
import { graphsByName } from "../run/graphs.js";
import type { AnyGraph } from "../run/state-graph.js";
import type { QueueConnection } from "./connection.js";
import { queueName } from "./job.js";

/** How much of a graph may run at once, over all workers. The queue enforces it. */
export interface GraphLimits {
  /** The largest number of its runs at once; at least 1. `Infinity` removes the limit. */
  readonly concurrency?: number;
  /**
   * At most `max` of its runs are taken within `duration` milliseconds. A run that continues later counts again. A
   * `max` of `Infinity` removes the limit.
   */
  readonly rate?: {
    /** The number of runs. */
    readonly max: number;
    /** The length of the window, in milliseconds. */
    readonly duration: number;
  };
}

/** @throws ConfigError if a limit is invalid. */
function checkLimits(name: string, limits: unknown): void {
  checkOptions(name, limits, {
    concurrency: integer(1, true),
    rate: (rate, value) => {
      checkOptions(rate, value, { max: integer(1, true), duration: integer(1) });
      const { max, duration } = value as Partial<NonNullable<GraphLimits["rate"]>>;
      integer(1, true)(`${rate}.max`, max);
      integer(1)(`${rate}.duration`, duration);
    },
  });
}

/** Options of {@link Worker}. */
export interface WorkerOptions {
  /** The graphs whose runs to take. Runs of other graphs are left to workers that have those graphs. */
  readonly graphs: readonly AnyGraph[];
  /**
   * Where every step of the runs is saved. Workers on several machines need a `PostgresStore` or a `RedisStore`, which
   * reject the writes of a worker that has lost its lease.
   */
  readonly store: CheckpointStore;
  /** The queue's address. */
  readonly connection: QueueConnection;
  /** The number of runs of each graph to work on at once; at least 1, 10 by default. */
  readonly concurrency?: number;
  /**
   * Milliseconds: a worker that sends no heartbeat for two thirds of the lease loses its runs, and a worker with
   * capacity takes over within 2 × lease; from 200 to 2,147,483,647, 30,000 by default.
   */
  readonly lease?: number;
  /**
   * How often to try a run that makes no progress, including one that kills or hangs its worker; at least 1, 3 by
   * default.
   */
  readonly maxAttempts?: number;
  /**
   * The delay before a failed run is retried, in milliseconds; 1,000 by default. Doubles with each attempt, up to
   * 30,000.
   */
  readonly backoff?: number;
  /**
   * The longest time that a run may sleep, or wait for its next attempt, inside the worker, in milliseconds; 5,000 by
   * default. For longer waits it returns to the queue.
   */
  readonly longestWait?: number;
  /** Limits by graph name, for all workers together; those of the worker that starts last apply. */
  readonly limits?: Readonly<Record<string, GraphLimits>>;
  /**
   * The events of a run to forward to {@link QueuedRun.events}; `true` for all, none by default. Each costs one more
   * statement.
   */
  readonly events?: true | readonly EventType[];
  /** Process signals, such as `SIGTERM`, on which to call {@link Worker.close} before they take effect. */
  readonly drainOn?: readonly NodeJS.Signals[];
  /** Handles errors outside of runs, such as a lost connection; `console.error` by default. */
  readonly onError?: (error: unknown) => void;
}

/** Validated options, with their defaults. */
export interface WorkerSettings
  extends Required<Omit<WorkerOptions, "graphs" | "connection" | "events">> {
  readonly events: true | ReadonlySet<EventType>;
}

const isSignal = (value: unknown): boolean =>
  Object.hasOwn(constants.signals, String(value)) && value !== "SIGKILL" && value !== "SIGSTOP";

/** Throws if the value is not a checkpoint store. */
export const isStore: Check = check("a CheckpointStore", isCheckpointStore);

/** The default error handler. */
export function printError(error: unknown): void {
  console.error("waymark/worker:", error instanceof Error ? error.message : error);
}

/** @throws ConfigError if an option is invalid. */
export function resolveWorkerOptions(options: WorkerOptions): WorkerSettings {
  checkOptions("options", options, {
    graphs: checkGraphs,
    store: isStore,
    connection: () => {},
    concurrency: integer(1),
    lease: integerFrom(200, LONGEST_TIMER),
    maxAttempts: integer(1),
    backoff: duration,
    longestWait: duration,
    limits: (name, value) => checkAllLimits(name, value, options.graphs),
    events: check(
      "true, or the types of events to send",
      (value) => value === true || Array.isArray(value),
    ),
    drainOn: check(
      "an array of signals that a process can listen to",
      (value) => Array.isArray(value) && value.every(isSignal),
    ),
    onError: callable,
  });
  checkGraphs("options.graphs", options.graphs);
  isStore("options.store", options.store);
  const { events = [] } = options;
  return {
    store: options.store,
    concurrency: options.concurrency ?? 10,
    lease: options.lease ?? 30_000,
    maxAttempts: options.maxAttempts ?? 3,
    backoff: options.backoff ?? 1000,
    longestWait: options.longestWait ?? 5000,
    limits: options.limits ?? {},
    events: events === true ? true : new Set(events),
    drainOn: options.drainOn ?? [],
    onError: options.onError ?? printError,
  };
}

function checkGraphs(name: string, graphs: unknown): void {
  if (!Array.isArray(graphs) || graphs.length === 0) {
    throw new ConfigError(name, `must be an array of one graph or more; got ${show(graphs)}`);
  }
  const again = graphs.findIndex((graph, index) => graphs.indexOf(graph) < index);
  if (again !== -1) throw new ConfigError(`${name}[${again}]`, "was given before");
  for (const [graphName, graph] of graphsByName(name, graphs)) {
    queueName(graphName);
    graph.validate();
  }
}

function checkAllLimits(name: string, limits: unknown, graphs: unknown): void {
  const known = Array.isArray(graphs) ? graphs.map((graph) => graph?.name) : [];
  const checks = known.map((graph) => [graph, checkLimits] as const);
  checkOptions(name, limits, Object.fromEntries(checks));
}
