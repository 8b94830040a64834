import type { CheckpointStore } from "../checkpoint/store.js";
import { ConfigError } from "../errors.js";
import { callable, check, checkOptions, duration, integer, text } from "../options.js";
import { checkRunId } from "../state/run-id.js";
import { State } from "../state/state.js";
import { Cancellations } from "./cancellations.js";
import { type Place, placeOf, type QueueConnection } from "./connection.js";
import { type Engine, openEngine, type RunQueue } from "./engine.js";
import { type Office, RunHandle } from "./handle.js";
import { jobOptions } from "./job.js";
import { Listener } from "./listener.js";
import { jobIdOf, queueName, runIdOf } from "./names.js";
import { isStore, printError } from "./options.js";
import type { Load } from "./peers.js";

/** Options of {@link Client}. */
export interface ClientOptions {
  /** Where the queue is. */
  readonly connection: QueueConnection;
  /** Where the workers save the runs. */
  readonly store: CheckpointStore;
  /** Is told what goes wrong between calls, a lost connection for example; `console.error` by default. */
  readonly onError?: (error: unknown) => void;
}

/** Options of {@link Client.submit}. */
export interface SubmitOptions {
  /** Names the run; a new one by default. A run that is in the queue already is not put there twice. */
  readonly runId?: string;
  /** Milliseconds to wait before it may start. */
  readonly delay?: number;
  /** From 1, the most urgent, to 2,097,152. Runs without one come before all that have one. */
  readonly priority?: number;
  /**
   * While a run with the same id is in the queue, unfinished, or for `ttl` milliseconds, no other is put
   * there: the handle is that of the first.
   */
  readonly deduplicate?:
    | string
    | {
        /** What may be there once. */
        readonly id: string;
        /** Milliseconds from now on; without it, until the run is finished. */
        readonly ttl?: number;
      };
  /** The version of the graph that the data is of; workers with an older graph leave the run alone. */
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
  /** At most so many runs. */
  readonly limit?: number;
  /** See {@link SubmitOptions.version}. */
  readonly version?: number;
}

/** A run that failed for good. */
export interface FailedRun {
  /** Names the run. */
  readonly runId: string;
  /** The message of its error. */
  readonly error: string;
  /** When it failed, ISO 8601. */
  readonly timestamp: string;
  /** How often a worker has begun it, or gone on with it. */
  readonly starts: number;
}

/** What a client keeps of each graph. */
interface Counter extends Office {
  readonly queue: RunQueue;
}

const TWO_TO_21 = 2 ** 21;

/**
 * Starts runs from anywhere, for workers to take; needs none of the graphs. Close it when it is not needed
 * any more.
 *
 * @example
 * ```ts compile
 * import { PostgresStore } from "waymark/stores/postgres";
 * import { Client } from "waymark/worker";
 *
 * const connection = "postgres://localhost/app";
 * const client = new Client({ connection, store: new PostgresStore({ client: connection }) });
 * const run = await client.submit("article", { topic: "cairns" }, { deduplicate: "cairns" });
 * const final = await run.result();
 *
 * await client.schedule("report", { of: "yesterday" }, { id: "daily", cron: "0 6 * * *" });
 * await client.unschedule("report", "daily");
 * for (const { runId } of await client.failed("report")) {
 *   await (await client.run("report", runId)).resume();
 * }
 * await client.close();
 * ```
 */
export class Client {
  readonly #place: Place;
  readonly #store: CheckpointStore;
  readonly #onError: (error: unknown) => void;
  readonly #load: Load | undefined;
  readonly #counters = new Map<string, Counter>();
  #engine: Promise<Engine> | undefined;
  #cancellations: Cancellations | undefined;
  #closed = false;

  /** @throws ConfigError when an option is not what it must be. */
  constructor(options: ClientOptions);
  /** @internal */
  constructor(options: ClientOptions, load: Load);
  constructor(options: ClientOptions, load?: Load) {
    checkOptions("options", options, { connection: () => {}, store: isStore, onError: callable });
    isStore("options.store", options.store);
    this.#place = placeOf(options.connection);
    this.#store = options.store;
    const tell = options.onError ?? printError;
    // A server that stops may still say so on connections that are on their way out.
    this.#onError = (error) => this.#closed || tell(error);
    this.#load = load;
  }

  /**
   * Puts a run into the queue.
   *
   * @throws ConfigError when an option is not what it must be, or a package is missing.
   * @throws SerializationError when a checkpoint can't hold the data.
   */
  async submit<D extends object>(
    graph: string,
    data: D,
    options: SubmitOptions = {},
  ): Promise<RunHandle<D>> {
    text("graph", graph);
    checkOptions("options", options, submitOptions);
    const { runId, delay, priority, version } = options;
    const state = State.create(data, runId === undefined ? {} : { runId });
    const job = {
      state: JSON.stringify(state.toJSON()),
      ...(version !== undefined && { version }),
    };
    const counter = await this.#counter(graph);
    const added = await counter.queue.add(graph, job, {
      ...jobOptions,
      jobId: jobIdOf(state.runId),
      ...(delay !== undefined && { delay }),
      ...(priority !== undefined && { priority }),
      ...(options.deduplicate !== undefined && { deduplication: dedup(options.deduplicate) }),
    });
    return new RunHandle<D>(graph, runIdOf(String(added.id)), counter);
  }

  /**
   * The handle of a run that was submitted before, here or elsewhere.
   *
   * @throws ConfigError when the client is closed, or an argument is not what it must be.
   */
  async run<D extends object>(graph: string, runId: string): Promise<RunHandle<D>> {
    text("graph", graph);
    return new RunHandle<D>(graph, checkRunId(runId), await this.#counter(graph));
  }

  /**
   * Starts a run of the data again and again. The queue keeps the schedule, so nobody has to stay for it.
   * The id of each run is `repeat:<schedule>:<milliseconds>`.
   *
   * @throws ConfigError when an option is not what it must be.
   * @throws SerializationError when a checkpoint can't hold the data.
   */
  async schedule<D extends object>(
    graph: string,
    data: D,
    options: ScheduleOptions,
  ): Promise<void> {
    text("graph", graph);
    checkOptions("options", options, scheduleOptions);
    const { id, cron, every, timeZone, limit, version } = options;
    scheduleOptions.id("options.id", id);
    if ((cron === undefined) === (every === undefined)) {
      throw new ConfigError("options", "wants one of cron and every");
    }
    const state = JSON.stringify(State.create(data).toJSON());
    const { queue } = await this.#counter(graph);
    const repeat = {
      ...(cron === undefined ? { every: every ?? 0 } : { pattern: cron }),
      ...(timeZone !== undefined && { tz: timeZone }),
      ...(limit !== undefined && { limit }),
    };
    await queue.upsertJobScheduler(id, repeat, {
      name: graph,
      data: { state, ...(version !== undefined && { version }) },
      opts: jobOptions,
    });
  }

  /**
   * Ends a schedule; says whether there was one. Runs that it has started go on.
   *
   * @throws ConfigError when the client is closed, or an argument is not what it must be.
   */
  async unschedule(graph: string, id: string): Promise<boolean> {
    text("graph", graph);
    const { queue } = await this.#counter(graph);
    return queue.removeJobScheduler(id);
  }

  /**
   * The runs of a graph that failed for good, the last to fail first. {@link RunHandle.resume} tries one again.
   *
   * @throws ConfigError when the client is closed, or an argument is not what it must be.
   */
  async failed(graph: string, limit = 100): Promise<FailedRun[]> {
    text("graph", graph);
    integer(1)("limit", limit);
    const { queue } = await this.#counter(graph);
    const jobs = await queue.getFailed(0, limit - 1);
    return jobs.map((job) => ({
      runId: runIdOf(String(job.id)),
      error: job.failedReason,
      timestamp: new Date(job.finishedOn ?? job.timestamp).toISOString(),
      starts: job.attemptsStarted,
    }));
  }

  /** Lets go of the connections; the store stays open. */
  async close(): Promise<void> {
    this.#closed = true;
    await (await this.#engine?.catch(() => undefined))?.close();
  }

  async #counter(graph: string): Promise<Counter> {
    const engine = await this.#open();
    const known = this.#counters.get(graph);
    if (known !== undefined) return known;
    this.#cancellations ??= new Cancellations(engine);
    const name = queueName(graph);
    const counter: Counter = {
      store: this.#store,
      queue: engine.queue(name),
      listener: new Listener(engine, name),
      cancellations: this.#cancellations,
      publish: (fields) => engine.publish(name, fields),
    };
    this.#counters.set(graph, counter);
    return counter;
  }

  #open(): Promise<Engine> {
    if (this.#closed) throw new ConfigError("client", "is closed: make a new one");
    this.#engine ??= openEngine(this.#place, this.#onError, this.#load).catch((error: unknown) => {
      // The next call tries again.
      this.#engine = undefined;
      throw error;
    });
    return this.#engine;
  }
}

const scheduleId = check(
  "a name without colons",
  (value) => typeof value === "string" && value !== "" && !value.includes(":"),
);

const scheduleOptions = {
  id: scheduleId,
  cron: text,
  every: integer(1),
  timeZone: text,
  limit: integer(1),
  version: integer(0),
};

const submitOptions = {
  runId: (_name: string, value: unknown) => void checkRunId(value),
  delay: duration,
  priority: check(
    `a whole number from 1 to ${TWO_TO_21}`,
    (value) => Number.isSafeInteger(value) && Number(value) >= 1 && Number(value) <= TWO_TO_21,
  ),
  deduplicate: (name: string, value: unknown) => {
    if (typeof value === "string") return text(name, value);
    checkOptions(name, value, { id: text, ttl: integer(1) });
    text(`${name}.id`, (value as { readonly id?: unknown }).id);
  },
  version: integer(0),
};

function dedup(given: NonNullable<SubmitOptions["deduplicate"]>): { id: string; ttl?: number } {
  if (typeof given === "string") return { id: given };
  return { id: given.id, ...(given.ttl !== undefined && { ttl: given.ttl }) };
}
