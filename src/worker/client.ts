import type { CheckpointStore } from "../checkpoint/store.js";
import { during } from "../concurrency.js";
import { ConfigError } from "../errors.js";
import { checkLogPlace, type LogPlace } from "../observers/run-files.js";
import type { LoadPackage } from "../optional-peer.js";
import { callable, checkOptions, checkRunId, integer, text } from "../options.js";
import { defined } from "../state/shape.js";
import { State } from "../state/state.js";
import { Cancellations } from "./cancellations.js";
import { type CheckedConnection, checkConnection, type QueueConnection } from "./connection.js";
import { type Engine, openEngine, type RunQueue } from "./engine.js";
import type { QueueDeps } from "./following.js";
import { jobOptions, queueName, runIdOf } from "./job.js";
import { Listener } from "./listener.js";
import { isStore, printError } from "./options.js";
import { reconcile } from "./reconcile.js";
import { type QueuedRun, QueueHandle } from "./source.js";
import {
  checkRepeat,
  nameAndVersion,
  type ScheduleOptions,
  type SubmitOptions,
  type SubmittedGraph,
  scheduleOptions,
  submitOptions,
} from "./submission.js";
import { submitRun, submittedState } from "./submitted.js";

/** Options of {@link Client}. */
export interface ClientOptions {
  /** Where the queue is. */
  readonly connection: QueueConnection;
  /** Where the workers save the runs. */
  readonly store: CheckpointStore;
  /**
   * Where the graphs' `eventLog` writes, if this process can read it: {@link QueuedRun.events} then gives every event
   * in it. None by default.
   */
  readonly log?: LogPlace;
  /** Handles errors between calls, such as a lost connection; `console.error` by default. */
  readonly onError?: (error: unknown) => void;
}

/** A run that failed for good. */
export interface FailedRun {
  /** Names the run. */
  readonly runId: string;
  /** The message of its error. */
  readonly error: string;
  /** When it failed, ISO 8601. */
  readonly timestamp: string;
  /** How often a worker has started or continued it. */
  readonly starts: number;
}

/** The largest number that a queue can count to. */
const LARGEST = 2 ** 31 - 1;

/**
 * Submits runs for workers, from any process. It does not need the graphs themselves. Close it when you are done.
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
 * // After the queue lost its data:
 * await client.reconcile();
 * await client.close();
 * ```
 */
export class Client {
  readonly #connection: CheckedConnection;
  readonly #store: CheckpointStore;
  readonly #log: LogPlace | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #load: LoadPackage | undefined;
  readonly #depsByGraph = new Map<string, QueueDeps>();
  #engine: Promise<Engine> | undefined;
  #isReady = false;
  #cancellations: Cancellations | undefined;
  readonly #closed = new AbortController();

  /** @throws ConfigError if an option is invalid. */
  constructor(options: ClientOptions);
  /** @internal */
  constructor(options: ClientOptions, load: LoadPackage);
  constructor(options: ClientOptions, load?: LoadPackage) {
    checkOptions("options", options, {
      connection: () => {},
      store: isStore,
      log: checkLogPlace,
      onError: callable,
    });
    isStore("options.store", options.store);
    this.#connection = checkConnection(options.connection);
    this.#store = options.store;
    this.#log = options.log;
    const report = options.onError ?? printError;
    // A stopping server may still report errors on connections that are being closed.
    this.#onError = (error) => this.#closed.signal.aborted || report(error);
    this.#load = load;
  }

  /**
   * Saves a new run and puts it into the queue. A run that is already in the store keeps its data and continues. If
   * this rejects, the run may be in the store: submit it again with the same `runId`. Pass the graph itself instead of
   * its name to have the data and the result typed; the graph does not run here.
   *
   * @throws ConfigError if an option is invalid or a package is missing.
   * @throws SerializationError if a checkpoint can't hold the data.
   * @throws WaymarkError with the code `QUEUE` if the queue can't be reached or does not respond; this applies to all
   *   methods that query it. See {@link QueueConnectionOptions.statementTimeout}.
   */
  async submit<D extends object>(
    graph: string | SubmittedGraph<D>,
    data: D,
    options: SubmitOptions = {},
  ): Promise<QueuedRun<D>> {
    checkOptions("options", options, submitOptions);
    const { name, version } = nameAndVersion(graph, options.version);
    const { delay, priority, deduplicate } = options;
    const state = submittedState(data, { name, version }, options);
    const deps = await this.#depsOf(name);
    const how = defined({
      ...jobOptions,
      delay: delay && Math.ceil(delay),
      priority,
      deduplication:
        typeof deduplicate === "string" ? { id: deduplicate } : deduplicate && defined(deduplicate),
    });
    const added = await this.#during(() => submitRun(this.#store, deps.queue, name, state, how));
    return new QueueHandle<D>(name, runIdOf(added), deps);
  }

  /**
   * The handle of a run that was submitted earlier, by any client.
   *
   * @throws ConfigError if the client is closed or an argument is invalid.
   */
  async run<D extends object>(
    graph: string | SubmittedGraph<D>,
    runId: string,
  ): Promise<QueuedRun<D>> {
    const { name } = nameAndVersion(graph, undefined);
    return new QueueHandle<D>(name, checkRunId(runId), await this.#depsOf(name));
  }

  /**
   * Answers a pause of a run by its name, and lets a worker continue the run if it waits for that. See
   * {@link QueuedRun.answer}.
   *
   * @throws ConfigError if the client is closed, an argument is invalid, or the run has completed.
   * @throws CheckpointConflictError if a worker holds the run and it does not wait for this pause.
   */
  async answer<D extends object>(
    graph: string | SubmittedGraph<D>,
    runId: string,
    name: string,
    value: unknown,
  ): Promise<void> {
    return (await this.run(graph, runId)).answer(name, value);
  }

  /**
   * Starts runs of the data on a schedule. The queue keeps the schedule; no process has to stay alive for it. The id of
   * each run is `repeat:<schedule>:<milliseconds>`.
   *
   * @throws ConfigError if an option is invalid.
   * @throws SerializationError if a checkpoint can't hold the data.
   */
  async schedule<D extends object>(
    graph: string | SubmittedGraph<D>,
    data: D,
    options: ScheduleOptions,
  ): Promise<void> {
    checkOptions("options", options, scheduleOptions);
    const { name, version } = nameAndVersion(graph, options.version);
    const { id, cron, every, timeZone, limit } = options;
    scheduleOptions.id("options.id", id);
    if ((cron === undefined) === (every === undefined)) {
      throw new ConfigError("options", "must have exactly one of cron and every");
    }
    if (cron === undefined && timeZone !== undefined) {
      throw new ConfigError("options.timeZone", "applies to cron only");
    }
    const state = JSON.stringify(State.create(data).toJSON());
    const { queue } = await this.#depsOf(name);
    const repeat = defined({
      ...{ every, pattern: cron, tz: timeZone },
      limit: limit && Math.min(limit, LARGEST),
    });
    const { bullmq } = await this.#open();
    checkRepeat(repeat, bullmq);
    const template = { name, data: defined({ state, version }), opts: jobOptions };
    await this.#during(() => queue.upsertJobScheduler(id, repeat, template));
  }

  /**
   * Ends a schedule; returns whether there was one. Runs that it already started continue.
   *
   * @throws ConfigError if the client is closed or an argument is invalid.
   */
  async unschedule(graph: string, id: string): Promise<boolean> {
    text("graph", graph);
    scheduleOptions.id("id", id);
    const { queue } = await this.#depsOf(graph);
    return this.#during(() => queue.removeJobScheduler(id));
  }

  /**
   * The runs of a graph that failed for good, most recent failure first. {@link QueuedRun.resume} retries one.
   *
   * @throws ConfigError if the client is closed or an argument is invalid.
   */
  async failed(graph: string, limit = 100): Promise<FailedRun[]> {
    text("graph", graph);
    integer(1)("limit", limit);
    const { queue } = await this.#depsOf(graph);
    const last = Math.min(limit, LARGEST) - 1;
    const jobs = await this.#during(() => queue.getFailed(0, last));
    return jobs.map((job) => ({
      runId: runIdOf(String(job.id)),
      error: job.failedReason,
      timestamp: new Date(job.finishedOn ?? job.timestamp).toISOString(),
      starts: job.attemptsStarted,
    }));
  }

  /**
   * Refills a queue that lost its data from the store: puts back each unfinished run that nobody works on and that is
   * not in its queue, with its delay or its pause, and wakes up each run that waits in its queue although it is due.
   * Runs that were cancelled, that failed, or that were forked or rolled back and not resumed since stay as they are.
   * Calling it again does nothing.
   *
   * @param graph - only runs of this graph. Name each graph if the store also has runs that no worker should take.
   * @returns the ids of the runs that it put back or woke up.
   * @throws ConfigError if the client is closed, an argument is invalid, or the store has no `runs`.
   */
  async reconcile<D extends object>(graph?: string | SubmittedGraph<D>): Promise<string[]> {
    const only = graph === undefined ? undefined : nameAndVersion(graph, undefined).name;
    const queueOf = async (name: string): Promise<RunQueue> => (await this.#depsOf(name)).queue;
    return this.#during(() => reconcile(this.#store, queueOf, only));
  }

  /** Closes the connections; the store stays open. Pending `result()` calls reject. */
  async close(): Promise<void> {
    this.#closed.abort(new ConfigError("client", "is closed: make a new one"));
    const closed = this.#engine?.then(
      (engine) => engine.close(),
      () => {},
    );
    // A client that is still waiting for its database closes the connection when it gets one.
    if (this.#isReady) await closed;
  }

  async #depsOf(graph: string): Promise<QueueDeps> {
    const engine = await this.#during(() => this.#open());
    const known = this.#depsByGraph.get(graph);
    if (known !== undefined) return known;
    this.#cancellations ??= new Cancellations(engine);
    const name = queueName(graph);
    const deps: QueueDeps = {
      store: this.#store,
      log: this.#log,
      queue: engine.queue(name),
      listener: new Listener(engine, name),
      cancellations: this.#cancellations,
      closed: this.#closed.signal,
      publish: (fields) => engine.publish(name, fields),
    };
    this.#depsByGraph.set(graph, deps);
    return deps;
  }

  /** Rejects as soon as the client closes: a closed queue never answers. */
  #during<T>(work: () => Promise<T>): Promise<T> {
    return during(work, this.#closed.signal);
  }

  #open(): Promise<Engine> {
    this.#engine ??= openEngine(this.#connection, this.#onError, this.#load).then(
      (engine) => {
        this.#isReady = true;
        return engine;
      },
      (error: unknown) => {
        // The next call retries.
        this.#engine = undefined;
        throw error;
      },
    );
    return this.#engine;
  }
}
